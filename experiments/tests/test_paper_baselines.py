"""Table 2: every classical model is trained on both kinds of pictures, once."""

import re

import pytest
import torch
from made_up import estimate, section

from experiments import classical
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
    return Result("baselines", {"table": lines}, {}, 0, 1.0)


@pytest.mark.slow
def test_table_2_trains_every_baseline_on_both_kinds_of_pictures_once(folder, monkeypatch):
    place = folder / "baselines-quick"
    result = classical.STUDY.run("", place, quick=True)
    lines = [(line["baseline"], line["trained_on"]) for line in result.values["table"]]
    assert len(set(lines)) == len(lines) == 2 * len(classical.BASELINES)
    assert all(0 <= line["accuracy"]["transformed"]["value"] <= 1 for line in result.values["table"])
    monkeypatch.setattr(classical, "BASELINES", {})
    again = classical.STUDY.run("", place, methods=["nam"], quick=True)
    assert again.values["table"] == [line for line in result.values["table"] if line["baseline"] == "nam"]


def test_pictures_in_one_pose_are_those_pictures_and_follow_the_seed():
    data = load_dataset("mnist_sample", "train")[:40]
    moved = classical.in_one_pose(data)
    assert torch.equal(moved.labels, data.labels)
    assert torch.equal(moved.images, classical.in_one_pose(data).images)
    assert not torch.equal(moved.images, classical.in_one_pose(data, seed=1).images)
    assert not torch.equal(moved.images, data.images)


def test_table_2_has_a_row_for_each_model_and_a_table_for_each_data_set():
    text = section(table_2())
    assert re.search(r"\| nam \| 0\.3141 .* 0\.2718 .* \| 0\.935 \| 3\.0 \|", text)
    assert "| SITE |" not in text, "its accuracies stand where the file says of which weights"
    assert text.count("| nam |") == 2
    assert "CIFAR-10" in text
