"""The `torchray` package as an oracle, where it is installed and imports."""

import importlib

import pytest
import torch
from attribution_networks import batch, small_vgg
from torch.nn import functional as F

from torchsite.attribution import METHODS

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torchray dates from 2019


def oracle(module, function):
    """A function of torchray, or a skip that says what is missing."""
    try:
        return getattr(importlib.import_module(f"torchray.attribution.{module}"), function)
    except ImportError as error:
        pytest.skip(f"torchray does not import here: {error}")


@pytest.fixture(params=[0, 1])
def case(request):
    return small_vgg(request.param), *batch(request.param)


def close(found, expected):
    torch.testing.assert_close(found, expected.detach()[:, 0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "module"),
    [("gradient", "gradient"), ("guided_backprop", "guided_backprop"), ("deconvnet", "deconvnet")],
)
def test_signal_at_the_picture(case, name, module):
    net, images, classes = case
    expected = oracle(module, module)(net, images.clone().requires_grad_(), classes)
    close(METHODS[name](net)(images, classes), expected)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("grad_cam", "grad_cam"),
        ("linear_approximation", "linear_approx"),
        ("excitation_backprop", "excitation_backprop"),
    ],
)
def test_signal_at_a_layer(case, name, module):
    net, images, classes = case
    maps = oracle(module, module)(net, images.clone().requires_grad_(), classes, saliency_layer="3")
    expected = F.interpolate(maps, size=(8, 8), mode="bilinear", align_corners=False)
    close(METHODS[name](net, layer="3")(images, classes), expected)


def test_rise_estimates_the_same_map():
    """Torchray draws its own masks and mirrors them at the border: the estimates agree, but not exactly."""
    rise = oracle("rise", "rise")
    net, (images, classes) = small_vgg(0), batch(0, n=1)
    net, images = net.float(), images.float()
    with torch.random.fork_rng():
        expected = rise(net, images, num_masks=8000, num_cells=7)[0, classes[0]]
    found = METHODS["rise"](net)(images, classes)[0]
    assert torch.corrcoef(torch.stack([found.flatten(), expected.flatten()]))[0, 1] > 0.75
    torch.testing.assert_close(found.mean(), expected.mean(), rtol=0.05, atol=0)
