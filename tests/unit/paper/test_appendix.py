"""The experiments of the appendix run on stand-ins, resume step by step, and become sections of the page."""

import pytest
import torch

from torchsite.data import BamDataset, Dataset
from torchsite.errors import DataError
from torchsite.model import SITE, BlackBox, load
from torchsite.model.blocks import n_parameters
from torchsite.paper import families, food, many_classes
from torchsite.paper.arrays import load_arrays
from torchsite.paper.bam import experiment as bam
from torchsite.paper.bam import photograph as bam_photograph
from torchsite.paper.bam.data import join_objects, painted_halves, shuffled
from torchsite.paper.bam.measures import Models, measure_method
from torchsite.paper.bam.section import bam_section, verdict_sentences
from torchsite.paper.drawing import save_paper_figures
from torchsite.paper.experiment import EXPERIMENTS
from torchsite.paper.families_section import families_section, food_section
from torchsite.paper.pages import results_page
from torchsite.results import Result
from torchsite.training.recipes import build_model, load_recipe, override
from torchsite.transforms import TransformFamily

TINY = {
    "epochs": 1,
    "validate_every": 1,
    "batch_size": 100,
    "model.generator_options": {"widths": [2, 2], "code": 4, "trunk": [2, 2]},
}


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
    patch.setattr(bam, "QUICK_METHODS", ("self_explanation", "gradient"))
    patch.setattr(bam, "N_OWN", 12)
    patch.setattr(bam, "N_USUAL", 12)
    patch.setattr(bam, "N_HELD_OUT", 9)
    patch.setattr(bam, "PATCH_STEPS", 2)
    patch.setattr(bam, "QUICK", dict(bam.QUICK) | {"epochs": 1, "validate_every": 1})
    yield folder, bam.run(folder, quick=True)
    patch.undo()


def test_bam_measures_both_kinds_and_all_methods(bam_run):
    _, result = bam_run
    lines = {(line["model"], line["method"]) for line in result.values["table"]}
    assert lines == {("site", "self_explanation"), ("site", "gradient"), ("black_box", "gradient")}
    assert set(result.values["accuracy"]) == {f"{k}, {b}" for k in bam.MODELS for b in bam.LABELLINGS}
    assert "self_consistency" in result.values["accuracy"]["site, object"]
    assert "held_out accuracy" in result.values["accuracy"]["black_box, scene"]


def test_bam_takes_finished_steps_up_again(bam_run):
    folder, result = bam_run
    written = {path: path.stat().st_mtime_ns for path in (folder / "steps").iterdir()}
    again = bam.run(folder, quick=True)
    assert {path: path.stat().st_mtime_ns for path in (folder / "steps").iterdir()} == written
    assert again.values["table"] == result.values["table"]


def test_bam_becomes_a_section_and_two_sheets(bam_run):
    folder, _ = bam_run
    page = results_page(folder)
    assert "## BAM: objects on scenes" in page
    assert "points at object" in page
    names = {path.name for path in save_paper_figures(Result.load(folder / "bam.json"), folder)}
    assert names == {"bam-untransformed.png", "bam-transformed.png"}


def test_a_cat_on_a_pagoda_is_shown_by_the_models_beside(bam_run):
    pytest.importorskip("skimage")
    models, place = bam_run[0], bam_run[0].with_name("bam_photograph-quick")
    trained = {path: path.stat().st_mtime_ns for path in models.rglob("*.safetensors")}
    result = bam_photograph.run(place, quick=True)
    assert trained == {path: path.stat().st_mtime_ns for path in models.rglob("*.safetensors")} != {}
    arrays = load_arrays(place / "bam_photograph.npz")
    assert 0.05 < float(arrays["region"].float().mean()) < 0.25, "the face takes a third to half of each side"
    site = load(models / "site-scene" / "model")
    logits = site(arrays["image"])
    assert result.values["sheet"]["scene"] == site.classes[int(logits.argmax())]
    torch.testing.assert_close(
        arrays["scene.self_explanation"][0].sum(), logits.max(), atol=1e-3, rtol=1e-3, check_dtype=False
    )
    assert "A cat's face on a pagoda" in results_page(place)
    drawn = {path.name for path in save_paper_figures(result, place)}
    assert drawn == {"bam_photograph-untransformed.png", "bam_photograph-transformed.png"}


def test_without_models_beside_they_are_trained_and_nothing_is_measured(bam_run, tmp_path):
    pytest.importorskip("skimage")
    bam_photograph.run(tmp_path / "bam_photograph-quick", quick=True)
    made = {path.name for path in (tmp_path / "bam-quick").iterdir()}
    assert made == {f"{kind}-{by}" for kind in bam.MODELS for by in bam.LABELLINGS}


def perfect(painted, by):
    """A network that knows the answer of these pictures, whatever they show."""

    class Known(BlackBox):
        def forward(self, images):
            labels = getattr(painted.test, f"{by}_labels")[: len(images)]
            return torch.nn.functional.one_hot(labels, 3).to(images) + 0 * images.sum((1, 2, 3))[:, None]

    return Known("identity", 3, image_shape=(3, 16, 16), encoder_options={"widths": [2], "code": 2})


def test_a_map_that_is_the_region_points_and_contrasts_perfectly(painted, monkeypatch):
    """Planted: the object model lights up the object, the scene model everything but the object."""
    part = painted.test[:8]
    halves = type(painted)(painted.train, part, painted.held_out)
    models = Models(perfect(halves, "object"), perfect(halves, "scene"))
    regions = part.regions.float()

    class Planted:
        def __init__(self, model, **_):
            self.model = model

        def __call__(self, images, classes):
            return regions if self.model is models.objects else 1 - regions

    monkeypatch.setattr("torchsite.paper.bam.measures.METHODS", {"planted": Planted})
    found = measure_method("planted", models, part, None)
    assert found["untransformed"]["mcs"]["value"] == pytest.approx(1.0)
    for what in ("objects", "scenes"):
        assert found[f"pointing {what}"]["untransformed"]["tau_0"]["score"]["value"] == pytest.approx(1.0)
    assert found["untransformed"]["iir"]["value"] is None


def test_a_method_that_does_not_apply_gives_its_reason(painted):
    models = Models(perfect(painted, "object"), perfect(painted, "scene"))
    assert (
        "does not explain itself"
        in measure_method("self_explanation", models, painted.test[:2], None)["reason"]
    )


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
    assert (found["first"], found["own rank"]) == ("grad_cam on black_box", 2)
    assert "Grad-CAM on the black box with 0.700" in verdict_sentences(bam.verdict(table))[0]
    assert "0.200 less" in verdict_sentences(bam.verdict(table))[0]


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


def test_families_are_measured_with_and_without(tmp_path, monkeypatch):
    monkeypatch.setattr(
        families, "FAMILIES", {"smooth distortion": {"distortion": 0.6}, "reflection": {"reflect": True}}
    )
    monkeypatch.setattr(families, "QUICK", dict(families.QUICK) | TINY)
    result = families.run(tmp_path, quick=True)
    assert set(result.values["table"]["reflection"]) == {"without", "with", "with, paper's poses"}
    trained = SITE.from_pretrained(tmp_path / "smooth_distortion" / "model")
    assert trained.config.family.distortion == 0.6
    section = families_section(result)
    assert "distortion 0.6" in section
    assert "under turns and shifts alone" in section
    assert families.run(tmp_path, quick=True).values == result.values


@pytest.mark.parametrize("added", families.FAMILIES.values(), ids=list(families.FAMILIES))
def test_every_family_is_one_that_training_can_be_asked_for(added):
    recipe = override(load_recipe(families.RECIPE), dict(families.COMMON) | dict(added))
    assert recipe.training.family == TransformFamily.from_mapping(added)
    assert recipe.training.family != TransformFamily()


def test_food_compares_starts_and_kinds(tmp_path):
    result = food.run(tmp_path, quick=True)
    assert set(result.values["models"]) == {f"{k}, from {s}" for k in food.KINDS for s in food.STARTS}
    assert "from ImageNet" in food_section(result)
    assert [path.name for path in save_paper_figures(result, tmp_path)] == ["food10.png"]


def test_more_classes_cost_more_parameters_in_the_generator_alone(tmp_path):
    result = many_classes.run(tmp_path, quick=True)
    few, more = (result.values[str(n)] for n in many_classes.QUICK_CLASSES)
    assert few["extractor"] == more["extractor"] > 0
    assert few["generator"] < more["generator"]
    assert all(found["seconds a picture"] > 0 and found["peak bytes"] > 1e8 for found in (few, more))
    assert "## Scale in classes" in results_page(tmp_path)


def test_a_hundred_and_one_classes_stay_within_the_papers_budget():
    model = load_recipe(many_classes.RECIPE).model
    names = [str(i) for i in range(101)]
    data = Dataset(torch.zeros(2, 3, 128, 128, dtype=torch.uint8), torch.tensor([0, 1]), names, "painted")
    site = build_model(model, data, load_recipe(many_classes.RECIPE).training)
    assert n_parameters(site.feature_extractor) < 1.02 * many_classes.PAPER["extractor"]
    assert n_parameters(site.generator) < many_classes.PAPER["generator"]


@pytest.mark.parametrize("changes", [{}, bam.SCRATCH, bam.QUICK])
def test_settings_of_bam_are_those_of_a_recipe(changes):
    assert override(load_recipe("bam"), changes).model.kind == "site"


@pytest.mark.parametrize("start", food.STARTS)
def test_settings_of_food_are_those_of_a_recipe(start):
    assert override(load_recipe("food10"), food.STARTS[start]).size == 128


def test_all_can_be_reproduced_by_name():
    assert {"bam", "bam_photograph", "bam_scratch", "food10", "families", "many_classes"} <= set(EXPERIMENTS)
    assert callable(bam_section)
