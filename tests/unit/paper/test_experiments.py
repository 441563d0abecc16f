"""Experiments run on a slice, resume, and write result files that the page can be drawn from."""

import pytest
from PIL import Image

from torchsite.paper.arrays import load_arrays
from torchsite.paper.drawing import save_public_figures
from torchsite.paper.experiment import EXPERIMENTS
from torchsite.paper.pages import results_page
from torchsite.paper.published import figure, headline
from torchsite.paper.variants import STUDIES
from torchsite.results import Result
from torchsite.training.recipes import load_recipe, override, shipped_recipes


def test_the_accuracy_experiment_writes_a_result_and_takes_it_up_again(tmp_path):
    result = EXPERIMENTS["mnist"].run(tmp_path, quick=True)
    assert set(result.values) == {"site", "black_box", "training", "paper"}
    written = (tmp_path / "site" / "result.json").stat().st_mtime_ns
    again = EXPERIMENTS["mnist"].run(tmp_path, quick=True)
    assert (tmp_path / "site" / "result.json").stat().st_mtime_ns == written, "trained twice"
    assert again.values["site"] == result.values["site"]
    page = results_page(tmp_path)
    assert "0.988 (0.981)" in page
    assert "self-consistency, floor" in page
    assert any("accuracy" in name for name in headline(Result.load(tmp_path / "accuracy_mnist.json")))


def test_a_study_shows_the_prototypes_of_its_variants_side_by_side(tmp_path):
    result = EXPERIMENTS["targets"].run(tmp_path, quick=True)
    assert set(result.values) == {"mean", "nearest"}
    arrays = load_arrays(tmp_path / "targets.npz")
    assert arrays["mean"].shape == arrays["nearest"].shape == (2, 10, 1, 28, 28)
    assert not arrays["mean"].equal(arrays["nearest"])
    assert "pictures/results-targets.png" in results_page(tmp_path)
    (figure,) = save_public_figures(result, tmp_path, tmp_path)
    with Image.open(figure) as drawn:
        assert drawn.width > 2 * drawn.height


@pytest.mark.parametrize("name", STUDIES)
def test_every_variant_of_a_study_is_a_valid_recipe(name):
    study = STUDIES[name]
    for changes in study.variants.values():
        override(load_recipe(study.recipe), dict(study.common) | dict(changes))


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_is_read(name):
    assert load_recipe(name).data == {"cifar10_cnn": "cifar10"}.get(name, name)


def test_a_figure_that_is_not_there_is_none():
    assert figure({"a": {"value": 0.5, "low": None, "high": None}}, "a") == "0.5000"
    assert figure({"a": {"value": 0.5, "low": 0.25, "high": 0.75}}, "a") == "0.5000  [0.2500, 0.7500]"
    assert figure({}, "a") is None
