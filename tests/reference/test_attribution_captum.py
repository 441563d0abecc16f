"""Where Captum has the method, it gives the same map."""

import warnings

import captum.attr as captum
import pytest
import torch
from attribution_networks import batch, small_resnet, small_vgg
from torch.nn import functional as F

from torchsite.attribution import METHODS


@pytest.fixture(params=[0, 1, 2])
def case(request):
    return small_vgg(request.param), *batch(request.param)


def quietly(attribute, *args, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Setting backward hooks on ReLU activations")
        warnings.filterwarnings("ignore", message="Input Tensor 0 did not already require gradients")
        return attribute(*args, **options)


def close(found, expected, tolerance=1e-10):
    torch.testing.assert_close(found, expected.detach(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("gradient", captum.Saliency),
        ("guided_backprop", captum.GuidedBackprop),
        ("deconvnet", captum.Deconvolution),
    ],
)
def test_signal_at_the_picture(case, name, reference):
    net, images, classes = case
    expected = quietly(reference(net).attribute, images, target=classes).abs().amax(1)
    close(METHODS[name](net)(images, classes), expected)


def test_grad_cam(case):
    net, images, classes = case
    maps = captum.LayerGradCam(net, net[2]).attribute(images, target=classes, relu_attributions=True)
    expected = F.interpolate(maps, size=(8, 8), mode="bilinear", align_corners=False)[:, 0]
    close(METHODS["grad_cam"](net, layer=net[2])(images, classes), expected)


def test_linear_approximation(case):
    net, images, classes = case
    maps = captum.LayerGradientXActivation(net, net[0]).attribute(images, target=classes).sum(1)
    close(METHODS["linear_approximation"](net, layer="0")(images, classes), maps)


def test_integrated_gradients(case):
    net, images, classes = case
    expected = quietly(captum.IntegratedGradients(net).attribute, images, target=classes, n_steps=50).sum(1)
    close(METHODS["integrated_gradients"](net, internal_batch_size=2)(images, classes), expected, 1e-6)


def test_occlusion(case):
    net, images, classes = case
    options = {"sliding_window_shapes": (2, 3, 3), "strides": (2, 2, 2)}
    expected = captum.Occlusion(net).attribute(images, target=classes, **options)[:, 0].to(images)
    close(METHODS["occlusion"](net, window=3, stride=2)(images, classes), expected, 1e-6)


def test_smooth_grad_averages_what_captum_averages(case):
    """Captum's noise comes from the global state: compare the means of many samples on either side."""
    net, images, classes = case
    with torch.random.fork_rng():
        torch.manual_seed(0)
        tunnel = captum.NoiseTunnel(captum.Saliency(net))
        options = {"nt_samples": 1500, "stdevs": 0.05, "abs": False, "nt_samples_batch_size": 250}
        expected = quietly(tunnel.attribute, images, target=classes, **options).abs().amax(1)
    spread = images.amax((1, 2, 3)) - images.amin((1, 2, 3))
    for image, label, reach, wanted in zip(images, classes, spread, expected, strict=True):
        method = METHODS["smooth_grad"](net, n_samples=1500, noise=0.05 / float(reach))
        torch.testing.assert_close(method(image[None], label[None])[0], wanted, rtol=0.1, atol=0.02)


def test_captum_overlooks_functional_rectifiers_and_we_do_not():
    """On a network of F.relu, Captum's guided backprop is silently the plain gradient."""
    net, (images, classes) = small_resnet(0), batch(0)
    plain = METHODS["gradient"](net)(images, classes)
    close(quietly(captum.GuidedBackprop(net).attribute, images, target=classes).abs().amax(1), plain)
    assert (METHODS["guided_backprop"](net)(images, classes) - plain).abs().max() > 1e-3
