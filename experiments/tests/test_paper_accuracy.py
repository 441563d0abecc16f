"""SITE beside the black box: both are trained once, and their accuracies stand beside the paper's."""

import re

import pytest
from made_up import ROOT, page, section

from experiments.registry import EXPERIMENTS
from torchsite.report.format import headline
from torchsite.results import Result


@pytest.mark.slow
def test_the_accuracy_experiment_writes_a_result_and_takes_it_up_again(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.models.N_QUICK", {"train": 200, "test": 100})
    result = EXPERIMENTS["mnist"].run(tmp_path, quick=True)
    assert set(result.values) == {"site", "black_box", "training", "learnt", "pmac"}
    written = (tmp_path / "site" / "result.json").stat().st_mtime_ns
    again = EXPERIMENTS["mnist"].run(tmp_path, quick=True)
    assert (tmp_path / "site" / "result.json").stat().st_mtime_ns == written, "trained twice"
    assert again.values["site"] == result.values["site"]
    text = page("results", tmp_path)
    assert "0.988 (0.981)" in text
    assert "self-consistency, floor" in text
    assert any("accuracy" in name for name in headline(Result.load(tmp_path / "accuracy_mnist.json")))


@pytest.mark.slow
def test_the_accuracy_experiment_takes_colour_recipes(folder):
    result = Result.load(folder / "cifar10-quick" / "accuracy_cifar10.json")
    assert "prototype_recognition" not in result.values["site"], "its prototypes are no pictures"
    assert {"accuracy", "self_consistency", "completeness"} <= set(result.values["site"])


@pytest.mark.parametrize(
    ("recipe", "row"),
    [
        ("cifar10", r"accuracy, untransformed .* 0\.892 \(0\.862\)"),
        ("cifar10", r"accuracy, transformed .* 0\.89 \(0\.89\)"),
        ("cifar10", r"self-consistency, raw .* 0\.8860"),
        ("cifar10", r"self-consistency, floor .* –"),
        ("cifar10_cnn", r"accuracy, untransformed .* 0\.840 \(0\.828\)"),
    ],
)
def test_the_papers_numbers_stand_beside_their_measures(recipe, row):
    result = Result.load(ROOT / "results" / f"accuracy_{recipe}.json")
    assert re.search(rf"\| {row} \|\n", section(result))
