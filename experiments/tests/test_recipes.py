"""Trainings in stages: each goes on from the weights before it, and all of them are counted."""

import pytest
import torch

from experiments import recipes
from experiments.recipes import STAGES, known_recipes, stages_of, take_weights, train_or_load
from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.model import load
from torchsite.training.recipes import Recipe, build_model, override

OPTIONS = {
    "model.feature_extractor": "small_cnn",
    "model.extractor_options": {"widths": (4, 4, 4), "depth": 2},
    "model.generator": "lateral",
    "model.generator_options": {"widths": [4, 4], "trunk": [4, 4], "code": 4},
}
STAGE = """
data: noise
model: {feature_extractor: small_cnn, extractor_options: {widths: [4, 4, 4], depth: 2}}
training: {epochs: 1, batch_size: 4, n_validation: 2, precision: '32', terms: []}
"""


def data():
    images = torch.randint(256, (12, 3, 16, 16), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    return Dataset(images, torch.arange(12) % 3, ("a", "b", "c"), "noise")


def built(**changes):
    recipe = override(Recipe(), OPTIONS | changes)
    return build_model(recipe.model, data(), recipe.training)


def test_stages_are_recipes():
    known = known_recipes()
    assert all({name, stage.before} <= set(known) for name, stage in STAGES.items())
    assert stages_of("mnist") == ("mnist_first", "mnist_drawn", "mnist")
    assert stages_of("cifar10_cnn") == ("cifar10_cnn",)


def test_a_training_goes_on_from_the_stage_before(tmp_path, monkeypatch):
    path = tmp_path / "stage.yaml"
    path.write_text(STAGE)
    monkeypatch.setattr(recipes, "known_recipes", lambda: {"first": path, "second": path})
    monkeypatch.setattr(recipes, "STAGES", {"second": recipes.Stage("first")})
    halves, still = (data(), data()), {"learning_rate": 1e-12, "weight_decay": 0}
    for _ in range(2):  # the second time the finished model is loaded
        model = train_or_load("second", tmp_path / "run", still, data=halves)
    before = load(tmp_path / "run" / "begin" / "model").state_dict()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.detach(), before[name])
    train_or_load("second", tmp_path / "alone", still, data=halves, staged=False)
    assert not (tmp_path / "alone" / "begin").exists()


def test_all_weights_are_taken_or_none():
    model, again = built(), built(seed=7)
    take_weights(again, model)
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in model.state_dict().items())
    for other in ({"model.kind": "black_box"}, {"model.extractor_options.depth": 3}):
        with pytest.raises(ConfigError):
            take_weights(built(**other), model)


@pytest.mark.parametrize("kind", ["site", "black_box"])
def test_those_of_extractor_and_encoder_alone_are_taken(kind):
    """What draws or answers is drawn anew, and may be of another shape."""
    model = built(**{"model.kind": kind})
    again = built(**{"model.kind": kind, "model.generator_options.trunk": [8, 4], "seed": 7})
    take_weights(again, model, "encoder")
    old, new = model.state_dict(), again.state_dict()
    same = {name for name, value in new.items() if name in old and value.equal(old[name])}
    reads = {name for name in new if name.startswith(recipes.ENCODING)}
    assert len(reads) > 10
    assert reads <= same
    assert {name for name in new if name not in reads and new[name].ndim > 1}.isdisjoint(same)
    wider = {"model.kind": kind, "model.generator_options.widths": [4, 8]}
    with pytest.raises(ConfigError):
        take_weights(built(**wider), model, "encoder")
