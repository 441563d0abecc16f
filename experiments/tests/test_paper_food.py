"""Food-101: both models, from ImageNet."""

import pytest
from made_up import section

from experiments import food
from experiments.models import KINDS
from experiments.publish import draw_figures
from experiments.recipes import load_recipe
from experiments.registry import EXPERIMENTS


@pytest.mark.slow
def test_food_compares_both_kinds(tmp_path):
    result = EXPERIMENTS["food10"].run(tmp_path, quick=True)
    assert set(result.values["models"]) == {f"{kind}, {food.START}" for kind in KINDS}
    assert "from ImageNet" in section(result)
    assert [path.name for path in draw_figures(EXPERIMENTS["food10"], tmp_path)] == ["food10.png"]


def test_the_title_is_that_of_the_recipe():
    assert f"{load_recipe('food10').size} × " in food.STUDY.title
