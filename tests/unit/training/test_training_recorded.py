"""The recipes minimise what they always did: losses recorded when objective and loop were others.

`recorded_losses.json` holds the first steps of each recipe on a hundred digits, with a small model in double
precision, of the former training (Lightning's Trainer, an objective in flat fields).
"""

import json
from pathlib import Path

import pytest
import torch

import trunk_generator  # noqa: F401  # with which the losses were recorded
from experiments.recipes import known_recipes, load_recipe
from torchsite.evaluation.training_log import read_log
from torchsite.model import SITE
from torchsite.training import fit, log
from torchsite.training.recipes import override
from training_makers import PYRAMID, digits

RECORDED = json.loads((Path(__file__).parent / "recorded_losses.json").read_text())
TRUNK = {"widths": (4, 8), "code": 8, "trunk": (4, 4, 4)}
SMALL = {
    "batch_size": 20,
    "precision": "32",
    "validate_every": 100,
    "n_validation": 4,
    "collapse_patience": 100,
    "checkpoint_seconds": 1e9,
    "terms.transformation.n_nearest": 4,
    "terms.transformation.n_exemplars": 2,
}


def make_model(recipe):
    identity = recipe.model.feature_extractor == "identity"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return SITE(
            "identity" if identity else "pyramid",
            "trunk",
            10,
            image_shape=(1, 28, 28),
            extractor_options={} if identity else PYRAMID,
            generator_options=TRUNK,
            zero_sum=recipe.model.zero_sum,
        ).double()


# Recipes that the former training did not know.
LATER = {
    "bam",
    "eurosat",
    "food101",
    "cifar10_additive",
    "cifar10",
    "cifar10_cnn_true",
    "food10",
    "mnist_drawn",
    "mnist",
    "mnist_once",
    "fashion_mnist_drawn",
    "fashion_mnist",
}


def test_every_recipe_is_recorded():
    assert set(RECORDED) | LATER == set(known_recipes())


@pytest.mark.parametrize("name", RECORDED)
def test_a_recipe_takes_the_steps_it_took(name, tmp_path, monkeypatch):
    monkeypatch.setattr(log, "MOST_STEPS_UNLOGGED", 1)
    expected = dict(RECORDED[name])
    weights = expected.pop("sum of weights")
    recipe = override(load_recipe(name), SMALL | {"epochs": len(expected["loss"]) // 5})
    model = make_model(recipe)
    fit(model, digits(), recipe.training, validation=digits(20, "test"), folder=tmp_path)
    curves = read_log(tmp_path / "logs" / "metrics.csv")
    for loss, values in expected.items():
        assert [value for _, value in curves[loss]] == pytest.approx(values, rel=1e-6, abs=2e-7), loss
    assert ("equivariance" in curves) == ("equivariance" in expected)
    found = sum(parameter.detach().abs().sum().item() for parameter in model.parameters())
    assert found == pytest.approx(weights, rel=1e-9)
