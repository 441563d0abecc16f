"""`torchsite train FOLDER`: says what it chose and why, warns of what harms, and ends with a report."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from torchsite.cli import app
from torchsite.errors import ConfigError, DataError
from torchsite.model import SITE
from torchsite.training.recipes import load_recipe

TINY = ["--model.extractor-options", '{"widths": [4, 4, 8, 8], "common": 8}',
        "--model.generator-options", '{"widths": [4, 8, 8], "trunk": [8, 8, 8]}']  # fmt: skip
DIGITS = ["--n-validation", 20]
runner = CliRunner()


def run(*words):
    result = runner.invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Bright discs on the left, dark ones on the right; one picture stands in the folder twice."""
    root, rng = tmp_path_factory.mktemp("photos") / "discs", np.random.default_rng(0)
    for name, colour in (("red", (220, 40, 40)), ("blue", (40, 40, 220))):
        (root / name).mkdir(parents=True)
        for i in range(30):
            pixels = rng.integers(0, 80, (24, 24, 3)).astype(np.uint8)
            pixels[6:18, 6:18] = colour
            Image.fromarray(pixels).save(root / name / f"{i}.png")
    (root / "red" / "copy.png").write_bytes((root / "red" / "0.png").read_bytes())
    return root


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))


def test_a_folder_becomes_a_model_and_a_report_within_its_minutes(photos, tmp_path):
    folder = tmp_path / "run"
    output = run("train", photos, "--minutes", 0.2, "--out", folder, *TINY)
    assert "because" in output
    assert "pyramid" in output
    assert "as you asked" in output
    assert "copies within a half" in output or "training pictures as well" in output
    assert "self-consistency, floor" in output
    page = (folder / "report.html").read_text()
    assert "confusion" in page.lower()
    assert "The data may mislead the training" in page
    trained = SITE.from_pretrained(folder / "model")
    assert trained.classes == ("blue", "red")
    shown = trained.gallery.pictures.float().mean((2, 3)).argmax(1)  # the strongest colour of each exemplar
    assert torch.equal(shown, torch.tensor([2, 0])[trained.gallery.labels])
    recipe = load_recipe(folder / "recipe.yaml")
    assert recipe.size == 32
    assert recipe.training.epochs >= 1


def test_a_finished_run_is_taken_up_with_the_settings_it_was_begun_with(photos, tmp_path):
    folder = tmp_path / "run"
    words = ["train", photos, "--minutes", 0.3, "--out", folder, "--epochs", 1, "--no-report", "--json"]
    first = json.loads(run(*words, *TINY))
    again = json.loads(run(*words, "--resume", *TINY))
    assert first["settings"]["epochs"] == {"chosen": "1", "why": "as you asked"}
    assert "earlier run" in again["settings"]["all settings"]["why"]
    assert again["measures"].keys() == first["measures"].keys()
    assert not (folder / "report.html").exists()


def test_folds_say_how_sure_the_accuracy_is(photos, tmp_path):
    words = [
        "train",
        photos,
        "--minutes",
        1,
        "--out",
        tmp_path / "run",
        "--epochs",
        1,
        "--no-report",
        "--json",
    ]
    said = json.loads(run(*words, "--folds", 2, "--black-box", "--poses", "any", *TINY))
    assert said["folds"]["site"]["n"] == said["folds"]["black_box"]["n"] == 61
    assert len(said["folds"]["site"]["per_fold"]) == 2
    assert said["folds"]["difference"].startswith("SITE minus black box")
    assert said["settings"]["poses"]["why"] == "as you asked"
    assert "±180°" in said["settings"]["poses"]["chosen"]


def test_minutes_and_a_recipe_exclude_each_other(photos):
    with pytest.raises(ConfigError, match="--recipe"):
        run("train", photos, "--minutes", 1, "--recipe", "mnist_sample")


def test_sheets_are_written_on_the_way_if_one_asks_for_them(photos, tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    given = ["--epochs", 1, "--batch-size", 8, "--no-report", "--log", "tensorboard"]
    run("train", photos, "--minutes", 1, "--out", tmp_path / "run", *given, *TINY)
    run("train", "mnist_sample", "--limit", 40, "--out", tmp_path / "digits", *given, *DIGITS)
    for folder in ("run", "digits"):
        log = reader.EventAccumulator(str(tmp_path / folder / "logs")).Reload()
        assert log.Tags()["images"] == ["explanations"]


def test_a_wrong_board_is_an_error_before_any_work(photos, tmp_path):
    with pytest.raises(ConfigError, match="'wandb'"):
        run("train", photos, "--log", "wanbd", "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_regions_of_a_folder_are_ignored_and_stay_in_the_recipe(photos, tmp_path):
    """Boxes of all pictures: those to test with are passed over. Without any the term would refuse them."""
    boxes, folder = tmp_path / "boxes.json", tmp_path / "run"
    boxes.write_text(
        json.dumps({f"{name}/{i}.png": [[0, 0, 6, 6]] for name in ("red", "blue") for i in range(30)})
    )
    words = ("train", photos, "--minutes", 0.1, "--no-report", "--no-gallery", "--out", folder, *TINY)
    run(*words, "--ignore", boxes, "--terms.ignored_regions.weight", 0.5)
    recipe = load_recipe(folder / "recipe.yaml")
    assert recipe.ignore == (str(boxes),)
    assert (recipe.training.terms[-1].name, recipe.training.terms[-1].weight) == ("ignored_regions", 0.5)
    for wrong in ({"red/99.png": [[0, 0, 6, 6]]}, {"red/1.png": [[0, 0, 99, 6]]}, {"red/1.png": []}):
        boxes.write_text(json.dumps(wrong))
        with pytest.raises(DataError):
            run(*words[: -len(TINY)], "--ignore", boxes)
