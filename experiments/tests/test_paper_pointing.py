"""The pointing game tells the smallest tolerance at which the claim holds."""

import torch

from experiments import pointing
from experiments.section import Pictures
from metric_models import Templates, convnet
from torchsite.data import Dataset
from torchsite.randomness import make_rng
from torchsite.results import Result


def pixels(n=12, name="mnist_sample"):
    rng = make_rng(0, "pixels")
    images = torch.randint(256, (n, 1, 12, 12), generator=rng, dtype=torch.uint8)
    return Dataset(images, torch.arange(n) % 4, tuple("abcd"), name, "test")


def templates():
    return Templates(torch.rand(4, 1, 12, 12, generator=make_rng(0)))


def test_the_pointing_experiment_tells_the_smallest_tolerance(tmp_path):
    methods = ["self_explanation", "random", "occlusion"]
    result = pointing.play(templates(), convnet(), pixels(), tmp_path, quick=True, methods=methods)
    lines = {(line["model"], line["method"]): line for line in result.values["table"]}
    assert set(lines) == {(model, method) for model in ("site", "black_box") for method in methods}
    assert "reason" in lines["black_box", "self_explanation"]
    assert set(lines["site", "random"]["transformed"]) == {"tau_0", "tau_1", "tau_2", "tau_3"}
    assert set(result.values["verdict"]) == {"transformed", "untransformed"}
    text = pointing.section(result, Pictures())
    assert "0.9993" in text
    assert text.count("| random | black_box | transformed |") == 1
    assert "\n- self_explanation on black_box: " in text
    assert "| self_explanation | black_box | not defined: " in text
    assert Result.load(tmp_path / "mnist_pointing.json").values["verdict"] == result.values["verdict"]


def test_the_verdict_is_the_smallest_tolerance_that_reaches_the_claim():
    scores = {f"tau_{t}": {"value": value} for t, value in enumerate((0.9, 0.9995, 0.9997, 1.0))}
    line = {"model": "site", "method": "self_explanation", "transformed": scores, "untransformed": scores}
    assert pointing.verdict([line]) == {"transformed": 1, "untransformed": 2}
    assert pointing.verdict([]) == {"transformed": None, "untransformed": None}
