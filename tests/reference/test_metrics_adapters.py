"""Quantus and Captum on our explainers: the same as asking them by hand, and their formulas."""

import numpy as np
import pytest
import torch
from captum.metrics import infidelity, sensitivity_max

from metric_models import convnet, gradient, noise
from torchsite.metrics import Deletion, as_explainer
from torchsite.metrics.adapters import captum_maps, quantus_explainer, quantus_scores
from torchsite.metrics.energy_pointing import energy_inside
from torchsite.randomness import make_rng

pytestmark = pytest.mark.filterwarnings("ignore")  # Quantus has advice on every call


def setting(n=4, channels=1):
    images, classes = noise(n, channels=channels)
    return images, classes, as_explainer(gradient, convnet(channels=channels).eval())


def test_quantus_mass_accuracy_is_the_energy_inside():
    quantus = pytest.importorskip("quantus", reason="Quantus is not installed")
    images, classes, explainer = setting()
    regions = torch.zeros(4, 12, 12, dtype=torch.bool)
    regions[:, 3:9, 2:7] = True
    metric = quantus.RelevanceMassAccuracy(
        abs=False, normalise=False, disable_warnings=True, display_progressbar=False
    )
    found = quantus_scores(metric, explainer, images, classes, options={"s_batch": regions[:, None].numpy()})
    assert found == pytest.approx(energy_inside(explainer(images, classes), regions).tolist(), abs=1e-5)


def test_quantus_pixel_flipping_is_our_deletion_with_black():
    quantus = pytest.importorskip("quantus", reason="Quantus is not installed")
    images, classes, explainer = setting()
    images[:, :, 0, 0] = 0  # what Quantus calls black is the darkest value
    metric = quantus.PixelFlipping(
        features_in_step=36,
        perturb_baseline="black",
        abs=False,
        normalise=False,
        disable_warnings=True,
        display_progressbar=False,
    )
    found = np.array(quantus_scores(metric, explainer, images, classes, options={"softmax": True}))
    ours = Deletion(explainer, fractions=(0.0, 0.25, 0.5, 0.75, 1.0), fills=["black"], n_resamples=5)
    ours.update(images, classes)
    expected = [point.value for point in ours.result().curve][1:]
    assert found.mean(0) == pytest.approx(expected, abs=1e-5)


def test_an_explainer_of_ours_is_a_function_of_quantus():
    images, classes, explainer = setting(channels=3)
    found = quantus_explainer(explainer)(explainer.model, images.numpy(), classes.numpy(), device="cpu")
    assert found.shape == (4, 1, 12, 12)
    assert found[:, 0] == pytest.approx(explainer(images, classes).numpy())
    other = convnet(channels=3, seed=5).eval()
    rebuilt = quantus_explainer(explainer)(other, images.numpy(), classes.numpy())
    assert rebuilt[:, 0] == pytest.approx(gradient(other, images, classes).numpy())


def test_captum_infidelity_is_0_for_the_gradient_of_a_linear_model():
    images, classes = noise(3, channels=2)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(288, 4)).double()
    # Both channels have the same weight, so that a map of one value per pixel can be right.
    with torch.no_grad():
        model[1].weight.view(4, 2, 144)[:, 1] = model[1].weight.view(4, 2, 144)[:, 0]
    weight = model[1].weight.detach().view(4, 2, 12, 12).sum(1)
    right = as_explainer(lambda x, c: weight[c], model)
    wrong = as_explainer(lambda x, c: weight[c].flip(-1), model)
    rng = make_rng(0)

    def perturb(inputs):
        delta = 0.1 * torch.randn(inputs.shape, generator=rng).to(inputs)
        return delta, inputs - delta

    def captum_says(explain):
        maps = captum_maps(explain)(images.double(), classes)
        with torch.no_grad():
            return infidelity(explain.logits, perturb, images.double(), maps, target=classes)

    assert captum_says(right).tolist() == pytest.approx([0, 0, 0], abs=1e-12)
    assert (captum_says(wrong) > 1e-4).all()
    steady = sensitivity_max(captum_maps(right), images.double(), target=classes)
    assert steady.tolist() == [0, 0, 0]


def test_captum_sensitivity_is_its_formula():
    images, classes = noise(2, channels=3)
    explain = as_explainer(lambda x, c: x[:, 0] ** 2, convnet(channels=3))
    delta = 0.1 * (2 * torch.rand(images.shape, generator=make_rng(3)) - 1)

    def perturb(inputs, radius):
        shown = inputs[0] if isinstance(inputs, tuple) else inputs
        return (shown + delta,)

    found = sensitivity_max(
        captum_maps(explain), images, perturb_func=perturb, n_perturb_samples=1, target=classes
    )
    change = (images + delta)[:, 0] ** 2 - images[:, 0] ** 2
    expected = change.flatten(1).norm(dim=1) / (images[:, 0] ** 2).flatten(1).norm(dim=1)
    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-4)


def test_maps_for_captum_have_the_shape_of_the_pictures_and_keep_their_sums():
    images, classes, explainer = setting(channels=3)
    (maps,) = captum_maps(explainer)(images, classes)
    assert maps.shape == images.shape
    torch.testing.assert_close(maps.sum(1), explainer(images, classes))
