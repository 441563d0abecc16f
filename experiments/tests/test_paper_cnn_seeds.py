"""Three seeds of the small CNN: trained apart, measured alike."""

import json
from dataclasses import replace

import pytest

from experiments import cnn_seeds
from experiments.section import Pictures
from experiments.spread import spread_text, table_of_seeds


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
    assert len(set(result.config["weights"].values())) == 2
    for seed in (0, 1):
        assert json.loads((folder / f"seed-{seed}" / "run.json").read_text())["training"]["seed"] == seed


def test_a_result_with_shared_kernels_shows_them_beside(found):
    result = found[1]
    with_others = replace(result, values={**result.values, "quarter_turns": result.values["seeds"]["0"]})
    assert "| mean ± deviation | shared kernels |" in cnn_seeds.section(with_others, Pictures())


def test_scores_stand_beside_each_other_with_their_spread(found):
    text = cnn_seeds.section(found[1], Pictures())
    assert "| seed 0 | seed 1 | mean ± deviation |" in text
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
