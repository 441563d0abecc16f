"""Food-101: both models from both starts."""

import pytest
from made_up import section

from experiments import food
from experiments.publish import draw_figures
from experiments.recipes import load_recipe
from experiments.registry import EXPERIMENTS
from torchsite.training.recipes import override


@pytest.mark.slow
def test_food_compares_starts_and_kinds(tmp_path):
    result = food.run(tmp_path, quick=True)
    assert set(result.values["models"]) == {f"{k}, from {s}" for k in food.KINDS for s in food.STARTS}
    assert "from ImageNet" in section(result)
    assert [path.name for path in draw_figures(EXPERIMENTS["food10"], tmp_path)] == ["food10.png"]


@pytest.mark.parametrize("start", food.STARTS)
def test_settings_of_food_are_those_of_a_recipe(start):
    recipe, changes = food.STARTS[start]
    assert override(load_recipe(recipe), changes).size == 128
