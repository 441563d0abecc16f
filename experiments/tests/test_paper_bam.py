"""BAM: four models, every method, objects never seen; steps resume and become a section and two sheets."""

from dataclasses import replace

import pytest
import torch
from made_up import page

from experiments.bam import experiment as bam
from experiments.bam import models as bam_models
from experiments.bam import pairs as bam_pairs
from experiments.bam import photograph as bam_photograph
from experiments.bam.data import join_objects, painted_halves, shuffled
from experiments.bam.dataset import BamDataset
from experiments.bam.models import LABELLINGS, QUICK, Models
from experiments.bam.pairs import Pairs
from experiments.cache import load_arrays
from experiments.measuring import Explaining
from experiments.models import KINDS
from experiments.publish import draw_figures
from experiments.recipes import load_recipe
from experiments.registry import EXPERIMENTS
from experiments.study import kept
from torchsite.attribution import METHODS
from torchsite.errors import DataError
from torchsite.model import BlackBox, load
from torchsite.training.recipes import override

pytestmark = pytest.mark.slow


def estimate(value):
    return {"value": value, "low": value, "high": value}


@pytest.fixture(scope="module")
def painted():
    return painted_halves(16)


@pytest.fixture(scope="module")
def bam_run(tmp_path_factory):
    """A run with two methods on a few pictures."""
    folder = tmp_path_factory.mktemp("appendix") / "bam-quick"
    patch = pytest.MonkeyPatch()
    patch.setattr(bam, "STUDY", replace(bam.STUDY, quick_methods=("self_explanation", "gradient")))
    patch.setattr(bam_photograph, "QUICK_METHODS", ("self_explanation", "gradient"))
    patch.setattr(bam_pairs, "PATCH_STEPS", 2)
    patch.setattr(bam_models, "QUICK", dict(QUICK) | {"epochs": 1, "validate_every": 1})
    yield folder, bam.STUDY.run("bam", folder, quick=True)
    patch.undo()


def test_bam_measures_both_kinds_and_all_methods(bam_run):
    _, result = bam_run
    lines = {(line["model"], line["method"]) for line in result.values["table"]}
    assert lines == {
        ("site", "self_explanation"),
        ("site", "plain_explanation"),
        ("site", "gradient"),
        ("black_box", "gradient"),
    }
    assert set(result.values["accuracy"]) == {f"{k}, {b}" for k in KINDS for b in LABELLINGS}
    assert "self_consistency" in result.values["accuracy"]["site, object"]
    assert "held_out accuracy" in result.values["accuracy"]["black_box, scene"]


def test_bam_takes_finished_steps_up_again(bam_run):
    folder, result = bam_run
    written = {path: path.stat().st_mtime_ns for path in (folder / "steps").iterdir()}
    again = bam.STUDY.run("bam", folder, quick=True)
    assert {path: path.stat().st_mtime_ns for path in (folder / "steps").iterdir()} == written
    assert again.values["table"] == result.values["table"]


def test_bam_becomes_a_section_and_two_sheets(bam_run):
    folder, _ = bam_run
    text = page("results", folder)
    assert "# BAM: objects on scenes" in text
    assert "points at object" in text
    names = {path.name for path in draw_figures(EXPERIMENTS["bam"], folder)}
    assert names == {"bam-untransformed.png", "bam-transformed.png"}


def test_a_cat_on_a_pagoda_is_shown_by_the_models_beside(bam_run):
    pytest.importorskip("skimage")
    models, place = bam_run[0], bam_run[0].with_name("bam_photograph-quick")
    trained = {path: path.stat().st_mtime_ns for path in models.rglob("*.safetensors")}
    result = bam_photograph.STUDY.run("", place, quick=True)
    assert trained == {path: path.stat().st_mtime_ns for path in models.rglob("*.safetensors")} != {}
    arrays = load_arrays(place / "bam_photograph.npz")
    assert 0.05 < float(arrays["region"].float().mean()) < 0.25, "the face takes a third to half of each side"
    site = load(models / "site-scene" / "model")
    logits = site(arrays["image"])
    assert result.values["sheet"]["scene"] == site.classes[int(logits.argmax())]
    torch.testing.assert_close(
        arrays["scene.self_explanation"][0].sum(), logits.max(), atol=1e-3, rtol=1e-3, check_dtype=False
    )
    assert "A cat's face on a pagoda" in page("results", place)
    drawn = {path.name for path in draw_figures(EXPERIMENTS["bam_photograph"], place)}
    assert drawn == {"bam_photograph-untransformed.png", "bam_photograph-transformed.png"}


def test_without_models_beside_they_are_trained_and_nothing_is_measured(bam_run, tmp_path):
    pytest.importorskip("skimage")
    bam_photograph.STUDY.run("", tmp_path / "bam_photograph-quick", quick=True)
    made = {path.name for path in (tmp_path / "bam-quick").iterdir()}
    assert made == {f"{kind}-{by}" for kind in KINDS for by in LABELLINGS}


def perfect(painted, by):
    """A network that knows the answer of these pictures, whatever they show."""

    class Known(BlackBox):
        def forward(self, images):
            labels = getattr(painted.test, f"{by}_labels")[: len(images)]
            return torch.nn.functional.one_hot(labels, 3).to(images) + 0 * images.sum((1, 2, 3))[:, None]

    return Known("identity", 3, image_shape=(3, 16, 16), encoder_options={"widths": [2], "code": 2})


def gathered(pairs, one):
    """The line of an explainer on the test pictures."""
    about = {"model": "site", "part": "test"}
    (line,) = kept([about | row for row in pairs.rows(one, bam.MEASURES["test"], quick=True)], bam.keep)
    return line


def test_a_map_that_is_the_region_points_and_contrasts_perfectly(painted, tmp_path, monkeypatch):
    """Planted: the object model lights up the object, the scene model everything but the object."""
    part = painted.test[:8]
    halves = type(painted)(painted.train, part, painted.held_out)
    models = Models(perfect(halves, "object"), perfect(halves, "scene"))
    regions = part.regions.float()

    def planted(model):
        return lambda images, classes: regions if model is models.objects else 1 - regions

    pairs, one = Pairs("planted", models, part, tmp_path), Explaining("planted", planted)
    monkeypatch.setattr(bam_pairs, "BATCH", len(part))
    found = gathered(pairs, one)["test"]
    assert found["untransformed"]["mcs"]["value"] == pytest.approx(1.0)
    for what in ("objects", "scenes"):
        assert found[f"pointing {what}"]["untransformed"]["tau_0"]["score"]["value"] == pytest.approx(1.0)


def test_a_method_that_does_not_apply_gives_its_reason(painted, tmp_path):
    models = Models(perfect(painted, "object"), perfect(painted, "scene"))
    pairs = Pairs("any", models, painted.test[:2], tmp_path)
    own = Explaining("self_explanation", METHODS["self_explanation"])
    assert "does not explain itself" in gathered(pairs, own)["reason"]


def test_the_verdict_names_the_first_and_the_gap():
    def line(model, method, value):
        pointing = {"transformed": {"tau_0": {"score": estimate(value)}}}
        scores = {"mcs": estimate(value)}
        test = {
            "untransformed": scores,
            "transformed": scores,
            "pointing objects": pointing,
            "pointing scenes": pointing,
        }
        return {"model": model, "method": method, "test": test}

    table = [
        line("site", "self_explanation", 0.5),
        line("black_box", "grad_cam", 0.7),
        line("site", "random", 0.9),
    ]
    found = bam.verdict(table)["MCS, untransformed"]
    assert found.startswith("first is Grad-CAM on the black box with 0.700; SITE itself is number 2 ")
    assert "0.200 less" in found


def test_objects_of_two_kinds_are_joined_on_the_same_scenes(painted):
    joined = join_objects(painted.train, painted.train)
    assert len(joined) == 2 * len(painted.train)
    assert int(joined.object_labels.max()) == 2 * len(painted.train.object_classes) - 1
    assert torch.equal(joined.scenes_only[-5:], painted.train.scenes_only[-5:])
    with pytest.raises(DataError, match="same scenes"):
        join_objects(painted.train, painted.test)


def test_shuffling_keeps_pictures_and_labels_together(painted):
    mixed = shuffled(painted.test, seed=3)
    assert isinstance(mixed, BamDataset)
    key = [
        (bytes(image.numpy()), int(label))
        for image, label in zip(mixed.images, mixed.object_labels, strict=True)
    ]
    old = [
        (bytes(i.numpy()), int(k))
        for i, k in zip(painted.test.images, painted.test.object_labels, strict=True)
    ]
    assert sorted(key) == sorted(old)
    assert key != old


@pytest.mark.parametrize("changes", [{}, QUICK])
def test_settings_of_bam_are_those_of_a_recipe(changes):
    assert override(load_recipe("bam"), changes).model.kind == "site"
