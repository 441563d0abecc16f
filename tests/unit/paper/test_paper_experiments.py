"""The experiments of the paper on a slice: they run, resume, and their results can be drawn."""

import json
import shutil

import pytest
import torch

from torchsite.data import load_dataset
from torchsite.data.catalogue import THINGS
from torchsite.errors import ConfigError, DataError
from torchsite.evaluation.methods import last_encoder_block, options_of
from torchsite.metrics.self_consistency import SelfConsistency
from torchsite.model import SITE, shipped_models
from torchsite.paper import (
    accuracy,
    consistency,
    examples,
    explanations,
    failures,
    mask_k,
    method_sheet,
    photographs,
)
from torchsite.paper import (
    baselines as baselines_table,
)
from torchsite.paper import (
    models as pairs,
)
from torchsite.paper.arrays import load_arrays, save_arrays
from torchsite.paper.cache import step
from torchsite.paper.experiment import EXPERIMENTS
from torchsite.paper.methods import rows_for
from torchsite.results import Result
from torchsite.training import recipes

METHODS = ["self_explanation", "grad_cam", "random"]
RECIPE = """
data: cifar10
model:
  feature_extractor: pyramid
  extractor_options: {widths: [8, 8, 8, 8], common: 8, depth: 4}
  generator_options: {widths: [8, 8, 8], code: 16, trunk: [8, 8, 8]}
training: {targets: mean}
"""


@pytest.fixture(scope="module")
def small_recipe(tmp_path_factory):
    """A small model under the name of the large one, so that slices take seconds."""
    path = tmp_path_factory.mktemp("recipes") / "cifar10.yaml"
    path.write_text(RECIPE)
    known = recipes.shipped_recipes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipes, "shipped_recipes", lambda: known | {"cifar10": path})
        yield path


@pytest.fixture(scope="module")
def folder(small_recipe, tmp_path_factory):
    """A folder of runs in which the models of CIFAR-10's experiment were made, on a few digits."""
    root = tmp_path_factory.mktemp("runs")
    accuracy.run("cifar10", root / "cifar10-quick", quick=True)
    return root


def test_the_accuracy_experiment_takes_colour_recipes(folder):
    result = Result.load(folder / "cifar10-quick" / "accuracy_cifar10.json")
    assert result.values["paper"]["site"] == 0.892
    assert "prototype_recognition" not in result.values["site"], "its prototypes are no pictures"
    assert {"accuracy", "self_consistency", "completeness"} <= set(result.values["site"])


def test_table_1_has_a_line_for_every_method_and_goes_on_where_it_stopped(folder, monkeypatch):
    place = folder / "cifar10_consistency-quick"
    result = consistency.run("cifar10", place, methods=METHODS, quick=True)
    lines = [(line["model"], line["method"]) for line in result.values["table"]]
    own = [METHODS[0], "relative_explanation"]
    assert lines == [("site", m) for m in [*own, *METHODS[1:]]] + [("black_box", m) for m in METHODS[1:]]
    plain, relative = (line["self_consistency"]["raw"]["value"] for line in result.values["table"][:2])
    assert plain != relative
    assert all(set(line["self_consistency"]) == set(consistency.FIGURES) for line in result.values["table"])
    assert result.values["paper"]["grad_cam"] == [0.8817, 0.8416]
    assert set(result.values["first"]) == {"raw", "calibrated", "centred"}
    monkeypatch.setattr(SelfConsistency, "_update", lambda *_: pytest.fail("measured twice"))
    again = consistency.run("cifar10", place, methods=METHODS, quick=True)
    assert again.values["table"] == result.values["table"]


@pytest.mark.parametrize(("zero_sum", "name"), [(False, "relative"), (True, "plain")])
def test_the_other_maps_are_of_the_same_weights_and_probabilities(zero_sum, name):
    torch.manual_seed(0)
    model = SITE("identity", "lateral", 3, image_shape=(1, 8, 8), zero_sum=zero_sum).eval()
    (_, _, usual), (called, method, options) = rows_for(model, ["self_explanation"])
    images = torch.rand(2, 1, 8, 8)
    mine, theirs = model.explain(images, **usual), model.explain(images, **options)
    relative = mine if zero_sum else theirs
    assert (called, method) == (f"{name}_explanation", "self_explanation")
    assert model.config.zero_sum is zero_sum, "the model itself stays as it is"
    torch.testing.assert_close(mine.probabilities, theirs.probabilities)
    torch.testing.assert_close(relative.evidence.sum(1), torch.zeros(2, 8, 8))
    assert not torch.allclose(mine.evidence, theirs.evidence)


def test_the_first_is_the_largest_of_all_lines():
    def line(model, method, **figures):
        scores = {name: {"value": value} for name, value in figures.items()}
        return {"model": model, "method": method, "self_consistency": scores}

    table = [
        line("site", "a", raw=0.5, calibrated=0.9, centred=None),
        line("black_box", "b", raw=0.6, calibrated=0.1, centred=0.2),
        {"model": "site", "method": "c", "reason": "not defined"},
    ]
    assert consistency.first(table) == {
        "raw": "b on black_box",
        "calibrated": "a on site",
        "centred": "b on black_box",
    }


def test_mask_k_keeps_its_curves_and_its_pictures(folder):
    place = folder / "cifar10_mask_k-quick"
    result = mask_k.run("cifar10", place, methods=METHODS[:2], quick=True)
    for line in result.values["table"]:
        assert len(line["accuracy"]["curve"]) == len(line["fractions"]) == 11
        assert line["log_odds"]["area"]["low"] <= line["log_odds"]["area"]["high"]
    shown = load_arrays(place / "cifar10_mask_k.npz")
    blank = (shown["masked"] == 0).all(1).flatten(1).double().mean(1)
    assert (blank.diff() > 0).all()
    assert blank[-1] >= mask_k.SHOWN[-1] - 0.01


def test_the_sheet_holds_a_map_for_every_pose(folder):
    place = folder / "cifar10_sheet-quick"
    result = method_sheet.run("cifar10", place, methods=[*METHODS, "excitation_backprop"], quick=True)
    arrays = load_arrays(place / "cifar10_sheet.npz")
    for line in result.values["lines"]:
        name = f"{line['model']}.{line['method']}"
        assert (name in arrays) == ("reason" not in line)
        if "reason" not in line:
            assert arrays[name].shape == (1, 3, 28, 28)
    assert any("reason" in line for line in result.values["lines"]), "a product of tanh's has no excitation"


@pytest.mark.parametrize("experiment", [explanations, examples])
def test_shown_pictures_are_classified_correctly(folder, experiment):
    name = f"cifar10_{experiment.__name__.split('.')[-1]}"
    result = experiment.run("cifar10", folder / f"{name}-quick", quick=True)
    arrays = load_arrays(folder / f"{name}-quick" / f"{name}.npz")
    notes, test = result.values["pictures"], load_dataset("mnist_sample", "test")
    assert len(notes) == len(arrays["images"]) > 0
    for note, image in zip(notes, arrays["images"], strict=True):
        assert note["class"] == note["predicted"] == test.classes[int(test.labels[note["row"]])]
        assert torch.equal(image, test.images[note["row"]] / 255)
    site = pairs.pair_beside("cifar10", folder / "any", quick=True).site
    explained = site.explain(arrays["images"])
    torch.testing.assert_close(arrays["maps"].sum((1, 2)), explained.logits.amax(1), atol=1e-4, rtol=1e-4)


def test_photographs_are_explained_like_the_models_own_pictures(folder):
    pytest.importorskip("skimage")
    place = folder / "cifar10_photographs-quick"
    result = photographs.run("cifar10", place, quick=True)
    assert [note["photograph"] for note in result.values["pictures"]] == list(photographs.PHOTOGRAPHS)
    arrays = load_arrays(place / "cifar10_photographs.npz")
    assert arrays["images"].shape == (3, 1, 28, 28)
    assert (arrays["images"].flatten(1).std(1) > 0.05).all(), "flat pictures"
    colour = photographs.photographs(SITE(classes=THINGS, image_shape=(3, 32, 32)))
    assert [THINGS[label] for label in colour.labels] == list(photographs.PHOTOGRAPHS.values())
    assert colour.images.shape == (3, 3, 32, 32)


def test_failures_are_confident_mistakes_whose_difference_is_that_of_the_logits(folder):
    place = folder / "cifar10_failures-quick"
    result = failures.run("cifar10", place, quick=True)
    why = load_arrays(place / "cifar10_failures.npz")["why"]
    notes = result.values["pictures"]
    assert len({note["class"] for note in notes}) == len(notes) == failures.N_SHOWN
    assert [n["probability"] for n in notes] == sorted((n["probability"] for n in notes), reverse=True)
    for note, difference in zip(notes, why.sum((1, 2)).tolist(), strict=True):
        assert note["class"] != note["predicted"]
        gap = note["logit of the class"] - note["logit of the predicted"]
        assert gap < 0
        assert difference == pytest.approx(gap, abs=1e-4)
    counts = [confusion["n"] for confusion in result.values["confusions"]]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) <= result.values["n_wrong"] <= result.values["n_images"]


def test_a_model_without_mistakes_has_no_failures():
    data = load_dataset("mnist_sample", "test")[:30]
    logits = torch.nn.functional.one_hot(data.labels, 10).float()
    assert len(failures.confident_mistakes(logits, data)) == 0
    assert failures.confusions(logits, data) == []


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


def test_a_step_is_taken_once_and_refused_under_other_settings(tmp_path):
    path = tmp_path / "step.json"
    assert step(path, {"a": 1}, lambda: {"x": 1}).values == {"x": 1}
    assert step(path, {"a": 1}, lambda: pytest.fail("done twice")).values == {"x": 1}
    with pytest.raises(ConfigError, match="other settings"):
        step(path, {"a": 2}, lambda: {"x": 2})


def test_arrays_come_back_and_damaged_ones_are_named(tmp_path):
    arrays = {"maps": torch.randn(2, 3), "site.grad_cam": torch.arange(4)}
    path = save_arrays(tmp_path / "arrays.npz", arrays)
    back = load_arrays(path)
    assert all(torch.equal(back[name], arrays[name]) for name in arrays)
    path.write_bytes(b"no arrays")
    with pytest.raises(DataError, match="holds no arrays"):
        load_arrays(path)
    with pytest.raises(DataError, match="run the experiment"):
        load_arrays(tmp_path / "nothing.npz")


def test_grad_cam_reads_a_hidden_layer_where_the_features_are_the_pixels():
    model = SITE.from_pretrained("mnist")
    assert options_of("grad_cam", model) == {"layer": last_encoder_block(model)}
    assert options_of("gradient", model) == {}
    learned = SITE(image_shape=(3, 16, 16))
    assert "layer" not in options_of("score_cam", learned)


def test_shipped_models_serve_where_none_were_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(pairs, "load_dataset", lambda name, split: load_dataset("mnist_sample", split)[:20])
    pair = pairs.pair_beside("mnist", tmp_path / "mnist_sheet")
    assert pair.origin == "shipped"
    assert {"mnist", "mnist_black_box"} <= set(shipped_models())
    assert set(pair.description()["weights"]) == {"site", "black_box"}
    assert not (tmp_path / "mnist").exists()


def test_results_are_plain_json(folder):
    files = list(folder.glob("*-quick/*.json"))
    assert len(files) >= 1
    for path in files:
        json.loads(path.read_text(), parse_constant=pytest.fail)


def test_every_experiment_of_a_pair_stands_in_the_registry(folder, tmp_path):
    for recipe in ("cifar10", "mnist"):
        for name in ("consistency", "explanations", "sheet", "mask_k", "examples", "failures"):
            assert f"{recipe}_{name}" in EXPERIMENTS
    shutil.copytree(folder / "cifar10-quick", tmp_path / "cifar10-quick")
    result = EXPERIMENTS["cifar10_explanations"].run(tmp_path / "cifar10_explanations-quick", quick=True)
    assert result.name == "cifar10_explanations"
