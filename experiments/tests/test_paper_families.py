"""Other families of transforms: models with and without, measured under each."""

import pytest
from made_up import section

from experiments import families
from experiments.recipes import load_recipe
from torchsite.model import SITE
from torchsite.training.recipes import override
from torchsite.transforms import TransformFamily

TINY = {
    "epochs": 1,
    "validate_every": 1,
    "batch_size": 100,
    "model.generator_options": {"widths": [2, 2], "code": 4, "trunk": [2, 2]},
}


@pytest.mark.slow
def test_families_are_measured_with_and_without(tmp_path, monkeypatch):
    monkeypatch.setattr(
        families, "FAMILIES", {"smooth distortion": {"distortion": 0.6}, "reflection": {"reflect": True}}
    )
    monkeypatch.setattr(families, "QUICK", dict(families.QUICK) | TINY)
    result = families.run(tmp_path, quick=True)
    assert set(result.values["table"]["reflection"]) == {"without", "with", "with, paper's poses"}
    trained = SITE.from_pretrained(tmp_path / "smooth_distortion" / "model")
    assert trained.config.family.distortion == 0.6
    text = section(result)
    assert "distortion 0.6" in text
    assert "under turns and shifts alone" in text
    assert families.run(tmp_path, quick=True).values == result.values


@pytest.mark.parametrize("added", families.FAMILIES.values(), ids=list(families.FAMILIES))
def test_every_family_is_one_that_training_can_be_asked_for(added):
    recipe = override(load_recipe(families.RECIPE), dict(families.COMMON) | dict(added))
    assert recipe.training.family == TransformFamily.from_mapping(added)
    assert recipe.training.family != TransformFamily()
