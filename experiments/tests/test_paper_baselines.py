"""Table 2: every classical model is trained on both kinds of pictures, once."""

import re

import pytest
import torch
from made_up import estimate, section

from experiments import baselines as baselines_table
from torchsite.data import load_dataset
from torchsite.results import Result


def table_2():
    lines = [
        {
            "data": data,
            "baseline": "nam",
            "trained_on": trained_on,
            "accuracy": {"untransformed": estimate(0.3141), "transformed": estimate(0.2718)},
            "cpu_seconds": 90.0,
        }
        for data in ("mnist", "cifar10")
        for trained_on in ("untransformed", "transformed")
    ]
    beside = {"mnist": {"site": {"untransformed": estimate(0.99), "transformed": estimate(0.98)}}}
    paper = {"mnist": {"nam": 0.935, "site": 0.988}, "cifar10": {"nam": 0.370}}
    values = {"table": lines, "beside": beside, "paper": paper}
    return Result("baselines", values, {}, 0, 1.0)


@pytest.mark.slow
def test_table_2_trains_every_baseline_on_both_kinds_of_pictures_once(folder, monkeypatch):
    place = folder / "baselines-quick"
    result = baselines_table.run(place, quick=True)
    lines = [(line["baseline"], line["trained_on"]) for line in result.values["table"]]
    assert len(set(lines)) == len(lines) == 2 * len(baselines_table.BASELINES)
    assert all(0 <= line["accuracy"]["transformed"]["value"] <= 1 for line in result.values["table"])
    assert result.values["beside"]["mnist"] == {}
    assert set(result.values["beside"]["cifar10"]) == {"site", "black_box"}
    monkeypatch.setattr(baselines_table, "BASELINES", {})
    again = baselines_table.run(place, baselines=["nam"], quick=True)
    assert again.values["table"] == [line for line in result.values["table"] if line["baseline"] == "nam"]


def test_pictures_in_one_pose_are_those_pictures_and_follow_the_seed():
    data = load_dataset("mnist_sample", "train")[:40]
    moved = baselines_table.in_one_pose(data)
    assert torch.equal(moved.labels, data.labels)
    assert torch.equal(moved.images, baselines_table.in_one_pose(data).images)
    assert not torch.equal(moved.images, baselines_table.in_one_pose(data, seed=1).images)
    assert not torch.equal(moved.images, data.images)


def test_table_2_has_a_row_for_each_model_and_a_table_for_each_data_set():
    text = section(table_2())
    assert re.search(r"\| nam \| 0\.3141 .* 0\.2718 .* \| 0\.935 \| 3\.0 \|", text)
    assert re.search(r"\| SITE \| – \| – \| 0\.9900 .* \| 0\.9800 .* \| 0\.988 \| – \|", text)
    assert text.count("| nam |") == 2
    assert "CIFAR-10" in text


def test_a_table_has_no_figures():
    assert baselines_table.figures(table_2(), {}) == {}
