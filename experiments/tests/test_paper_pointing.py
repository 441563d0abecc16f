"""The pointing game tells the smallest tolerance at which the claim holds."""

import torch

from experiments import pointing, study
from experiments.models import Pair
from experiments.section import Pictures
from torchsite.data import Dataset
from torchsite.model import SITE, BlackBox
from torchsite.randomness import make_rng
from torchsite.results import Result


def pair():
    rng = make_rng(0, "pixels")
    images = torch.randint(256, (12, 1, 12, 12), generator=rng, dtype=torch.uint8)
    data = Dataset(images, torch.arange(12) % 4, tuple("abcd"), "mnist_sample", "test")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        options = {"widths": (4, 5), "trunk": (4, 5)}
        site = SITE("pyramid", "spatial", 4, image_shape=(1, 12, 12), generator_options=options)
        black_box = BlackBox.beside(site.config, classes=data.classes, image_shape=(1, 12, 12))
        return Pair(site.eval(), black_box.eval(), data, "made up")


def test_the_pointing_experiment_tells_the_smallest_tolerance(tmp_path, monkeypatch):
    models = pair()
    monkeypatch.setattr(study, "pair_beside", lambda *_, **__: models)
    methods = ["self_explanation", "random", "occlusion"]
    result = pointing.STUDY.run("mnist", tmp_path, quick=True, methods=methods)
    lines = {(line["model"], line["method"]): line for line in result.values["table"]}
    own = [("site", name) for name in ("self_explanation", "relative_explanation")]
    others = [(model, name) for model in ("site", "black_box") for name in ("random", "occlusion")]
    assert set(lines) == {*own, *others}
    assert set(lines["site", "random"]["transformed"]) == {"tau_0", "tau_1", "tau_2", "tau_3"}
    assert set(lines["site", "random"]["self_consistency"]) == {"raw", "floor", "calibrated", "centred"}
    assert lines["site", "random"]["n_images"] == 12
    assert lines["site", "occlusion"]["n_images"] == 4
    text = pointing.STUDY.section(result, Pictures())
    assert "0.9993" in text
    assert text.partition("### Self-consistency")[0].count("| random | on the black box |") == 2
    assert Result.load(tmp_path / "mnist_pointing.json").values == result.values


def test_what_does_not_apply_has_its_reason():
    row = {"model": "site", "method": "grad_cam", "n_images": 2, "options": {}, "reason": "no layer"}
    both = [row | {"metric": metric, "values": None} for metric in pointing.STUDY.measures]
    result = Result("mnist_pointing", {"table": study.kept(both, pointing.keep)}, {"recipe": "mnist"}, 0, 1.0)
    assert "Grad-CAM on SITE is not defined: no layer" in pointing.STUDY.section(result, Pictures())


def test_the_verdict_is_the_smallest_tolerance_that_reaches_the_claim():
    scores = {f"tau_{t}": {"value": value} for t, value in enumerate((0.9, 0.9995, 0.9997, 1.0))}
    line = {"model": "site", "method": "self_explanation", "transformed": scores, "untransformed": scores}
    assert pointing.verdict([line]) == {"transformed": 1, "untransformed": 2}
    assert pointing.verdict([]) == {"transformed": None, "untransformed": None}
