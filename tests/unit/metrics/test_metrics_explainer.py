"""Whatever explains becomes an explainer, or is refused with a reason."""

import captum.attr
import pytest
import torch
from torch import nn

from metric_models import Templates, convnet, gradient, noise
from torchsite.errors import NotApplicableError, ShapeError
from torchsite.metrics import SelfConsistency, as_explainer
from torchsite.randomness import make_rng


def templates():
    return Templates(torch.rand(4, 1, 12, 12, generator=make_rng(0)))


def test_a_function_of_images_and_classes():
    images, classes = noise(3)
    explainer = as_explainer(lambda x, c: x[:, 0] * c[:, None, None])
    assert torch.equal(explainer(images, classes), images[:, 0] * classes[:, None, None])
    with pytest.raises(NotApplicableError, match="`model=`"):
        explainer.logits(images)


def test_a_function_of_the_model_too():
    images, classes = noise(3)
    model = convnet().eval()
    explainer = as_explainer(gradient, model)
    assert torch.equal(explainer(images, classes), gradient(model, images, classes))
    other = convnet(seed=1).eval()
    assert torch.equal(explainer.on(other)(images, classes), gradient(other, images, classes))
    with pytest.raises(NotApplicableError, match="model"):
        as_explainer(gradient)


def test_captum_objects_and_classes_sum_over_channels():
    images, classes = noise(3, channels=3)
    model = convnet(channels=3).eval()
    expected = captum.attr.InputXGradient(model).attribute(images.clone().requires_grad_(), target=classes)
    bound = as_explainer(captum.attr.InputXGradient(model))
    built = as_explainer(captum.attr.InputXGradient, model)
    for explainer in (bound, built):
        assert torch.allclose(explainer(images, classes), expected.sum(1))
        assert explainer.model is model
    other = convnet(channels=3, seed=1).eval()
    assert not torch.allclose(built.on(other)(images, classes), expected.sum(1))
    with pytest.raises(NotApplicableError):
        bound.on(other)


def test_a_model_that_explains_itself():
    images, classes = noise(3)
    model = templates()
    explainer = as_explainer(model)
    maps = explainer(images, classes)
    assert explainer.model is model
    assert torch.allclose(maps.sum((1, 2)), model(images).gather(1, classes[:, None])[:, 0])
    assert not maps.requires_grad


def test_coarse_maps_are_enlarged_without_moving():
    images, classes = noise(2)
    coarse = torch.rand(2, 3, 3, generator=make_rng(1))
    enlarged = as_explainer(lambda x, c: coarse)(images, classes)
    assert enlarged.shape == (2, 12, 12)
    assert torch.allclose(enlarged.mean((1, 2)), coarse.mean((1, 2)), atol=1e-6)


@pytest.mark.parametrize(
    ("explain", "said"),
    [
        (lambda x, c: x, r"\(3, 1, 12, 12\)"),
        (lambda x, c: x[:1, 0], r"\(1, 12, 12\)"),
        (lambda x, c: "maps", "str"),
        (lambda x, c: x[:, 0].long(), "int64"),
        (lambda x, c: x[:, 0] / 0, "432"),
    ],
)
def test_what_is_no_heatmap_is_refused(explain, said):
    with pytest.raises(ShapeError, match=said):
        as_explainer(explain)(*noise(3))


@pytest.mark.parametrize("thing", [3, "gradient", None])
def test_what_explains_nothing_is_refused(thing):
    with pytest.raises(NotApplicableError):
        as_explainer(thing)


def test_a_class_without_a_model_is_refused():
    with pytest.raises(NotApplicableError, match="model"):
        as_explainer(captum.attr.Saliency)


def test_a_model_is_given_back_in_its_mode_even_after_a_crash():
    model = nn.Sequential(nn.BatchNorm2d(1).eval(), nn.Dropout())

    def crash(x, c):
        assert not any(module.training for module in model.modules())
        raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        as_explainer(crash, model)(*noise(2))
    assert [module.training for module in model.modules()] == [True, False, True]


def test_gradients_work_inside_a_metric():
    images, classes = noise(6)
    metric = SelfConsistency(gradient, convnet().eval(), n_resamples=10)
    metric.update(images, classes)
    assert 0 < metric.result().raw.value <= 1
