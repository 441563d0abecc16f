"""Food-101: both models, from ImageNet."""

import pytest
from made_up import section

from experiments import food
from experiments.publish import draw_figures
from experiments.recipes import load_recipe
from experiments.registry import EXPERIMENTS
from torchsite.training.recipes import override


@pytest.mark.slow
def test_food_compares_both_kinds(tmp_path):
    result = food.run(tmp_path, quick=True)
    assert set(result.values["models"]) == {f"{kind}, from ImageNet" for kind in food.KINDS}
    assert "from ImageNet" in section(result)
    assert [path.name for path in draw_figures(EXPERIMENTS["food10"], tmp_path)] == ["food10.png"]


def test_settings_of_food_are_those_of_a_recipe():
    assert override(load_recipe(food.RECIPE), food.QUICK).size == 128
