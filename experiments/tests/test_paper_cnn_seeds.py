"""Three seeds of the small CNN and one training with shared kernels: trained apart, measured alike."""

import json
from dataclasses import replace

import pytest

from experiments import cnn_seeds
from experiments.recipes import load_recipe
from experiments.section import Pictures
from experiments.spread import spread_text, table_of_seeds
from torchsite.model import load
from torchsite.training.recipes import override


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("appendix") / "cifar10_seeds-quick"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cnn_seeds, "SEEDS", (0, 1))
        yield folder, cnn_seeds.run(folder, quick=True)


@pytest.mark.slow
def test_every_seed_is_a_training_of_its_own(found):
    folder, result = found
    assert list(result.values["seeds"]) == ["0", "1"]
    assert len(set(result.config["weights"].values())) == 3
    for seed in (0, 1):
        assert json.loads((folder / f"seed-{seed}" / "run.json").read_text())["training"]["seed"] == seed


def test_the_kernels_of_the_trial_are_shared_in_features_and_generator(found):
    folder, result = found
    config = load(folder / "quarter_turns" / "model").config
    assert config.extractor_options["quarter_turns"]
    assert config.generator_options["quarter_turns"]
    plain = load_recipe(cnn_seeds.RECIPE).model
    assert dict(config.extractor_options) == dict(plain.extractor_options) | {"quarter_turns": True}
    assert result.values["pmac"]["quarter_turns"] == pytest.approx(result.values["pmac"]["0"], rel=0.05)


def test_the_trainings_differ_in_nothing_but_what_they_are_called_after():
    recipe = load_recipe(cnn_seeds.RECIPE)
    for key, changes in cnn_seeds._trainings().items():
        changed = override(recipe, changes)
        seed = int(key) if key.isdigit() else recipe.training.seed
        assert changed.training == replace(recipe.training, seed=seed)


def test_scores_stand_beside_each_other_with_their_spread(found):
    text = cnn_seeds.section(found[1], Pictures())
    assert "| seed 0 | seed 1 | mean ± deviation | shared kernels |" in text
    for title in ("accuracy, upright", "hiding a patch does what the map says", "mask-k, area of accuracy"):
        assert f"| {title}" in text


def test_the_spread_is_the_mean_and_the_deviation():
    assert spread_text([0.5, 0.6, 0.7]) == "0.600 ± 0.100"


def test_a_score_that_a_seed_has_not_is_left_out_and_one_that_only_others_lack_is_a_dash():
    seeds = {
        "0": {"a": {"value": 1.0}, "b": {"value": 0.5}},
        "1": {"a": {"value": 2.0}, "b": {"value": None}},
    }
    text = table_of_seeds({"first": ("a",), "second": ("b",)}, seeds, {"other": {}})
    assert "| first | 1.000 | 2.000 | 1.500 ± 0.707 | – |" in text
    assert "second" not in text
