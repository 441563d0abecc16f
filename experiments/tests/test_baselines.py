"""The classical models: one interface, one seed, and what makes the additive one additive."""

import importlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from

from experiments.baselines import BASELINES, AdditiveNetwork, Baseline, NeuralAdditiveModel
from torchsite.data import load_dataset, to_float
from torchsite.errors import ConfigError, MissingExtraError, ShapeError
from torchsite.randomness import make_rng

SMALL = {
    "random_forest": {"n_estimators": 10},
    "logistic_regression": {"max_iter": 20},
    "xgboost": {"rounds": 3},
    "nam": {"epochs": 3, "hidden": (8,), "batch_size": 50, "rate": 5e-3},
}
EXPECTED = {
    "decision_tree": 0.5,
    "random_forest": 0.7,
    "logistic_regression": 0.75,
    "xgboost": 0.6,
    "nam": 0.75,
}


def build(name, **options):
    return BASELINES[name](**{**SMALL.get(name, {}), **options})


@pytest.fixture(scope="module")
def digits():
    return load_dataset("mnist_sample", "train")[:600], load_dataset("mnist_sample", "test")[:300]


@pytest.mark.slow
@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_learns_digits_and_follows_its_seed(name, digits):
    train, test = digits
    images = to_float(test.images)
    first, again = (build(name, seed=3).fit(train).predict(images) for _ in range(2))
    assert first.dtype == torch.int64
    assert torch.equal(first, again)
    assert float((first == test.labels).float().mean()) > EXPECTED[name]


@pytest.mark.parametrize("name", BASELINES)
def test_no_picture_affects_the_answer_for_another(name, digits):
    train, test = digits
    model = build(name, **({"epochs": 1} if name == "nam" else {})).fit(train[:200])
    images = to_float(test.images[:20])
    assert torch.equal(model.predict(images)[7:8], model.predict(images[7:8]))
    assert len(model.predict(images[:0])) == 0


@pytest.mark.parametrize("name", BASELINES)
def test_misuse_is_named(name, digits):
    images = to_float(digits[1].images[:2])
    model = build(name)
    assert isinstance(model, Baseline)
    with pytest.raises(ConfigError, match="call fit"):
        model.predict(images)
    with pytest.raises(ConfigError, match="got none"):
        model.fit(digits[0][:0])
    model.fit(digits[0][:100])
    with pytest.raises(ShapeError, match="1, 28, 28"):
        model.predict(images[..., :27])
    with pytest.raises(ShapeError, match="uint8"):
        model.predict(digits[1].images[:2])
    with pytest.raises(ConfigError, match="threads"):
        build(name, threads=0)


@pytest.mark.parametrize("name", sorted(set(BASELINES) - {"nam"}))
def test_a_missing_library_is_an_error_that_says_what_to_install(name, digits, monkeypatch):
    def missing(module):
        raise ImportError(f"no module named {module}")

    monkeypatch.setattr("torchsite.extras.import_module", missing)
    with pytest.raises(MissingExtraError, match=r"needs (scikit-learn|xgboost-cpu).*torchsite\[baselines\]"):
        build(name).fit(digits[0][:50])
    assert importlib.import_module("experiments.baselines")


def network(hidden, seed, n_pixels=6, n_classes=3):
    rng = make_rng(seed)
    made = AdditiveNetwork(n_pixels, n_classes, hidden, rng).double()
    for parameter in made.parameters():
        parameter.data += torch.randn(parameter.shape, generator=rng, dtype=torch.float64)
    return made.requires_grad_(False)


@settings(max_examples=25, deadline=None)
@given(sampled_from([(4,), (5, 3), (3, 4, 2)]), integers(0, 1000))
def test_the_curves_of_the_pixels_sum_to_the_logits(hidden, seed):
    made, pixels = network(hidden, seed), torch.rand(5, 6, generator=make_rng(seed)).double()
    torch.testing.assert_close(made.curves(pixels).sum(1) + made.bias, made(pixels))


@settings(max_examples=25, deadline=None)
@given(sampled_from([(4,), (5, 3)]), integers(0, 1000), integers(0, 5))
def test_what_a_pixel_says_depends_on_that_pixel_alone(hidden, seed, pixel):
    made, pixels = network(hidden, seed), torch.rand(5, 6, generator=make_rng(seed)).double()
    others = torch.arange(6) != pixel
    changed = torch.where(others, torch.rand(5, 6, generator=make_rng(seed, "other")).double(), pixels)
    torch.testing.assert_close(made.curves(changed)[:, pixel], made.curves(pixels)[:, pixel])
    assert not torch.equal(made.curves(changed), made.curves(pixels))


def test_every_parameter_of_the_additive_network_gets_a_gradient():
    made = network((4, 3), 0).requires_grad_(True)
    made(torch.rand(64, 6, generator=make_rng(0)).double()).pow(2).sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in made.parameters())


@pytest.mark.parametrize("wrong", [{"hidden": ()}, {"hidden": (0,)}, {"units": "tanh"}])
def test_an_impossible_additive_model_is_refused(wrong, digits):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        NeuralAdditiveModel(**wrong).fit(digits[0][:10])
