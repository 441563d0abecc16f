"""Every method on SITE itself and on the black box: a map, or a refusal that says why."""

import pytest
import torch

from torchsite.attribution import METHODS
from torchsite.errors import NotApplicableError
from torchsite.metrics import as_explainer
from torchsite.model import SITE, BlackBox

QUICK = {
    "rise": {"n_masks": 8},
    "extremal_perturbation": {"n_steps": 2},
    "smooth_grad": {"n_samples": 2},
    "integrated_gradients": {"n_steps": 4},
}
SMALL = {"widths": (8, 8, 8), "code": 8}
NARROW = {"widths": (8, 8, 8)}
MODELS = {
    "site, pixels": lambda: SITE("identity", n_classes=3, image_shape=(1, 16, 16), generator_options=SMALL),
    "site, sigmoid": lambda: SITE(
        "small_cnn",
        n_classes=3,
        image_shape=(3, 16, 16),
        activation="sigmoid",
        generator_options=SMALL,
        extractor_options=NARROW,
    ),
    "site, tanh": lambda: SITE(
        "small_cnn", n_classes=3, image_shape=(3, 16, 16), generator_options=SMALL, extractor_options=NARROW
    ),
    "black box": lambda: BlackBox(
        "small_cnn", n_classes=3, image_shape=(3, 16, 16), extractor_options=NARROW
    ),
}


def case(name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MODELS[name]()
    images = torch.rand(2, *model.config.image_shape, generator=torch.Generator().manual_seed(1))
    return model, images, torch.tensor([0, 2])


def refused(method, name):
    return (
        (method == "excitation_backprop" and name == "site, tanh")
        or (method == "contrastive_excitation_backprop" and name.startswith("site"))
        or (method == "self_explanation" and name == "black box")
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_a_map_or_a_refusal(method, name):
    model, images, classes = case(name)
    options = QUICK.get(method, {})
    if refused(method, name):
        with pytest.raises(NotApplicableError):
            METHODS[method](model, **options)(images, classes)
        return
    explain = METHODS[method](model, **options)
    maps = explain(images, classes)
    assert maps.shape == (2, 16, 16)
    assert (explain.layer_for(images) or "none").startswith(("none", "bound_features", "encoder.layers"))


def test_the_models_own_explanation_sums_to_its_logit():
    model, images, classes = case("site, sigmoid")
    maps = METHODS["self_explanation"](model)(images, classes)
    with torch.no_grad():
        logits = model.eval()(images).gather(1, classes[:, None])[:, 0]
    torch.testing.assert_close(maps.sum((1, 2)), logits, rtol=1e-4, atol=1e-4)


def test_excitation_backprop_on_a_product_of_pixels_conserves_probability():
    """Half goes to the pixels by way of the features, half by way of the prototypes: together 1."""
    model, images, classes = case("site, pixels")
    maps = METHODS["excitation_backprop"](model)(images, classes)
    assert ((maps.sum((1, 2)) > 0.5 - 1e-4) & (maps.sum((1, 2)) < 1 + 1e-4)).all()


@pytest.mark.parametrize("relative", [None, False, True])
def test_plain_and_relative_maps_of_one_model(relative):
    model, images, classes = case("site, sigmoid")
    options = {} if relative is None else {"relative": relative}
    expected = model.explain(images, relative=relative).heatmaps(classes=classes)
    assert torch.equal(METHODS["self_explanation"](model, **options)(images, classes), expected)
    assert torch.equal(as_explainer(model, relative=relative)(images, classes), expected)


def test_a_model_of_one_kind_of_maps_has_no_relative_ones():
    class Own(torch.nn.Module):
        def explain(self, images):
            raise AssertionError("never asked")

    with pytest.raises(NotApplicableError, match="`relative`"):
        METHODS["self_explanation"](Own(), relative=True)
    with pytest.raises(NotApplicableError, match="relative"):
        as_explainer(lambda images, classes: images[:, 0], relative=True)
