"""From a recipe to its model: every option arrives, the extractor or the data say how to normalise."""

from dataclasses import fields, replace

import pytest
import torch

from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.model import EXTRACTORS, SITE, BlackBox, load
from torchsite.model.config import SiteArchitecture, SiteConfig
from torchsite.model.extractors import Identity, SmallCNN
from torchsite.training.by_recipe import fit_recipe
from torchsite.training.config import TrainingConfig
from torchsite.training.recipes import (
    ModelSettings,
    Recipe,
    begin_model,
    build_model,
    load_recipe,
    override,
    pixel_statistics,
)

OPTIONS = {
    "model.feature_extractor": "small_cnn",
    "model.extractor_options": {"widths": (4, 4, 4), "depth": 2},
    "model.generator": "spatial",
    "model.generator_options": {"widths": (4, 5), "trunk": (4, 5)},
    "model.activation": "sigmoid",
    "model.product_scale": 0.5,
    "model.zero_sum": True,
}


class Fixed(SmallCNN):
    mean, std = (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)


def data():
    images = torch.randint(256, (12, 3, 16, 16), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    return Dataset(images, torch.arange(12) % 3, ("a", "b", "c"), "noise")


def built(**changes):
    recipe = override(Recipe(), OPTIONS | changes)
    return recipe, build_model(recipe.model, data(), recipe.training)


def test_every_option_of_a_recipe_is_a_field_of_the_models_configuration():
    names = {field.name for field in fields(ModelSettings)}
    assert names == {field.name for field in fields(SiteArchitecture)}
    assert names < {field.name for field in fields(SiteConfig)}


def test_every_option_of_a_recipe_arrives():
    recipe, model = built()
    assert isinstance(model, SITE)
    for field in fields(SiteArchitecture):
        assert getattr(model.config, field.name) == getattr(recipe.model, field.name)


def test_the_black_box_of_a_recipe_has_sites_extractor_and_encoder():
    _, model = built(**{"model.kind": "black_box"})
    assert isinstance(model, BlackBox)
    assert model.config.encoder_of == "spatial"
    assert model.config.encoder_options == {"widths": (4, 5)}
    assert model.config.extractor_options == OPTIONS["model.extractor_options"]


def test_pictures_are_normalised_as_the_data_says_unless_the_extractor_knows_better(monkeypatch):
    monkeypatch.setitem(EXTRACTORS, "fixed", Fixed)
    mean, std = pixel_statistics(data())
    assert (list(built()[1].config.mean), list(built()[1].config.std)) == (mean, std)
    fixed = built(**{"model.feature_extractor": "fixed"})[1]
    assert (fixed.config.mean, fixed.config.std) == (Fixed.mean, Fixed.std)
    pixels = built(**{"model.feature_extractor": "identity", "model.extractor_options": {}})[1]
    assert isinstance(pixels.feature_extractor, Identity)
    assert pixels.config.mean == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("kind", ["site", "black_box"])
def test_the_seed_alone_draws_the_weights(kind):
    settings = ModelSettings(
        kind=kind, feature_extractor="small_cnn", extractor_options={"widths": (4, 4, 4)}
    )
    state = torch.random.get_rng_state()
    first, again, other = (
        build_model(settings, data(), replace(TrainingConfig(), seed=seed)).state_dict() for seed in (1, 1, 2)
    )
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_a_recipe_can_begin_with_the_weights_of_another_model(tmp_path):
    recipe, model = built()
    model.save_pretrained(tmp_path / "model")
    again = begin_model(override(recipe, {"begin": str(tmp_path / "model"), "seed": 7}), data())
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in model.state_dict().items())
    other = override(recipe, {"begin": str(tmp_path / "model"), "model.kind": "black_box"})
    with pytest.raises(ConfigError, match="expected the weights of a BlackBox"):
        begin_model(other, data())
    wider = override(recipe, {"begin": str(tmp_path / "model"), "model.extractor_options.depth": 3})
    with pytest.raises(ConfigError, match="of another shape"):
        begin_model(wider, data())


@pytest.mark.parametrize("kind", ["site", "black_box"])
def test_a_recipe_can_begin_with_what_reads_alone(kind, tmp_path):
    """Extractor and encoder are taken, what draws or answers is drawn anew, and may be of another shape."""
    changes = {"model.kind": kind, "model.generator": "lateral"}
    changes |= {"model.generator_options": {"widths": [4, 4], "trunk": [4, 4], "code": 4}}
    recipe = override(built()[0], changes)
    model = build_model(recipe.model, data(), recipe.training)
    model.save_pretrained(tmp_path / "model")
    changes = {"begin": str(tmp_path / "model"), "begin_with": "encoder", "seed": 7}
    again = begin_model(override(recipe, changes | {"model.generator_options.trunk": [8, 4]}), data())
    old, new = model.state_dict(), again.state_dict()
    same = {name for name, value in new.items() if name in old and value.equal(old[name])}
    reads = {
        name for name in new if name.startswith(("feature_extractor.", "encoder.", "generator.encoder."))
    }
    assert len(reads) > 10
    assert reads <= same
    drawn = {name for name in new if name not in reads and new[name].ndim > 1}
    assert drawn
    assert not drawn & same
    wider = {"model.generator_options": {"widths": [4, 8], "trunk": [4, 4], "code": 4}}
    with pytest.raises(ConfigError, match="of another shape"):
        begin_model(override(recipe, changes | wider), data())


def test_a_recipe_that_goes_on_from_another_trains_that_one_first(tmp_path, monkeypatch):
    short = "training: {epochs: 1, batch_size: 4, n_validation: 2, precision: '32', terms: []}"
    parts = "model: {feature_extractor: small_cnn, extractor_options: {widths: [4, 4, 4], depth: 2}}"
    path = tmp_path / "first.yaml"
    path.write_text(f"data: noise\n{parts}\n{short}\n")
    monkeypatch.setattr("torchsite.training.recipes.shipped_recipes", lambda: {"first": path})
    monkeypatch.setattr("torchsite.training.by_recipe.shipped_recipes", lambda: {"first": path})
    recipe = override(load_recipe(path), {"begin": "first", "learning_rate": 1e-12, "weight_decay": 0})
    for _ in range(2):  # the second time both runs are there, and the first is not trained again
        fitted = fit_recipe(recipe, data(), validation=data(), folder=tmp_path / "run", resume=True)
    before = load(tmp_path / "run" / "begin" / "model").state_dict()
    weights = [name for name, _ in fitted.model.named_parameters()]
    torch.testing.assert_close(
        {name: fitted.model.state_dict()[name] for name in weights}, {name: before[name] for name in weights}
    )
