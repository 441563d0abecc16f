"""Studies train their variants side by side and show their prototypes."""

import pytest
from made_up import page
from PIL import Image

from experiments.cache import load_arrays
from experiments.publish import draw_figures
from experiments.recipes import known_recipes, load_recipe
from experiments.registry import EXPERIMENTS
from experiments.variants import STUDIES
from torchsite.training.recipes import override


@pytest.mark.slow
def test_a_study_shows_the_prototypes_of_its_variants_side_by_side(tmp_path):
    result = EXPERIMENTS["targets"].run(tmp_path, quick=True)
    assert set(result.values) == {"mean", "nearest"}
    arrays = load_arrays(tmp_path / "targets.npz")
    assert arrays["mean"].shape == arrays["nearest"].shape == (2, 10, 1, 28, 28)
    assert not arrays["mean"].equal(arrays["nearest"])
    assert "pictures/results-targets.png" in page("results", tmp_path)
    (figure,) = draw_figures(EXPERIMENTS["targets"], tmp_path)
    with Image.open(figure) as drawn:
        assert drawn.width > 2 * drawn.height


@pytest.mark.parametrize("name", STUDIES)
def test_every_variant_of_a_study_is_a_valid_recipe(name):
    study = STUDIES[name]
    for changes in study.variants.values():
        override(load_recipe(study.recipe), dict(study.common) | dict(changes))


@pytest.mark.parametrize("name", known_recipes())
def test_every_recipe_is_read(name):
    plain = name
    for ending in ("_first", "_drawn", "_additive", "_true"):
        plain = plain.removesuffix(ending)
    assert load_recipe(name).data == {"cifar10_cnn": "cifar10"}.get(plain, plain)
