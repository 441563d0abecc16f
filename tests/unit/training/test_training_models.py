"""From a recipe to its model: every option arrives, the extractor or the data say how to normalise."""

from dataclasses import fields, replace

import pytest
import torch

from torchsite.data import CATALOGUE, Dataset
from torchsite.errors import ConfigError
from torchsite.model import EXTRACTORS, SITE, BlackBox
from torchsite.model.config import SiteArchitecture, SiteConfig
from torchsite.model.extractors import Identity, SmallCNN
from torchsite.training.config import TrainingConfig
from torchsite.training.recipes import (
    ModelSettings,
    Recipe,
    build_model,
    load_recipe,
    override,
    pixel_statistics,
    shipped_recipes,
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


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_shipped_recipe_has_the_name_of_its_data_set(name):
    assert load_recipe(name).data == name in CATALOGUE


def test_a_field_that_is_no_more_is_refused_unless_it_did_nothing(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("data: mnist\nbegin: ''\ntraining: {epochs: 3, ema_decay: 0.0}\n")
    assert load_recipe(path).training.epochs == 3
    path.write_text("data: mnist\nbegin: mnist_first\n")
    with pytest.raises(ConfigError, match="begin"):
        load_recipe(path)
