"""`torchsite explain`: many pictures, the class asked about, and numbers that are the model's."""

import csv
import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from running import run, runner

from torchsite.cli import app
from torchsite.cli.inputs import plan
from torchsite.data import load_dataset, to_float
from torchsite.errors import ConfigError, DataError, NotApplicableError
from torchsite.model import SITE


@pytest.fixture(scope="module")
def expected(model_folder):
    images = to_float(load_dataset("mnist_sample", "test").images[:1])
    return SITE.from_pretrained(model_folder).explain(images)


def test_it_writes_a_picture_and_says_what_it_saw(model_folder, digit, tmp_path, expected):
    output = run("explain", digit, "--model", model_folder, "--out", tmp_path)
    first, second = int(expected.predicted[0]), int(expected.runner_up()[0])
    assert f"digit.png: {first} (" in output
    assert f"then {second} (" in output
    assert f"of the evidence between {first} and {second} speaks for {first}" in output
    with Image.open(tmp_path / "digit.png") as picture:
        assert picture.size[0] > 100


def test_arrays_are_the_numbers_of_the_model(model_folder, digit, tmp_path, expected):
    run("explain", digit, "--model", model_folder, "--out", tmp_path, "--format", "npz")
    with np.load(tmp_path / "digit.npz", allow_pickle=False) as arrays:
        logits = torch.from_numpy(arrays["logits"])
        torch.testing.assert_close(logits, expected.logits[0], atol=1e-4, rtol=1e-4)
        np.testing.assert_allclose(arrays["heatmaps"].sum((1, 2)), arrays["logits"], rtol=1e-4, atol=1e-4)
        assert arrays["classes"].tolist() == arrays["shown"].tolist() == [str(i) for i in range(10)]


def test_a_json_line_for_each_picture(model_folder, digit, tmp_path):
    for name in ("a.png", "b.png", "c.png"):
        shutil.copy(digit, tmp_path / name)
    words = ["--model", model_folder, "--out", tmp_path / "out", "--json", "--batch-size", 2]
    lines = [json.loads(line) for line in run("explain", tmp_path, *words).splitlines()]
    assert [line["picture"] for line in lines] == [
        str(tmp_path / name) for name in ("a.png", "b.png", "c.png")
    ]
    assert all(line["probability"] >= line["runner_up_probability"] for line in lines)
    assert all(0 <= line["share_of_evidence"] <= 1 for line in lines)
    assert (
        len({json.dumps({k: v for k, v in line.items() if k in ("logits", "probability")}) for line in lines})
        == 1
    )


def test_a_class_can_be_asked_about(model_folder, digit, tmp_path, expected):
    words = ["explain", digit, "--model", model_folder, "--out", tmp_path, "--class", "7", "--format", "json"]
    line = json.loads(run(*words, "--json"))
    assert line["class"] == "7"
    assert line["class_probability"] == pytest.approx(float(expected.probabilities[0, 7]), abs=2e-4)
    written = json.loads((tmp_path / "digit.json").read_text())
    assert written["shown"] == ["7"]
    assert np.shape(written["heatmaps"]) == (1, 28, 28)
    assert np.sum(written["heatmaps"]) == pytest.approx(float(expected.logits[0, 7]), abs=1e-3)


def test_why_one_class_and_not_another(model_folder, digit, tmp_path, expected):
    words = ["explain", digit, "--model", model_folder, "--out", tmp_path, "--why", "3", "8"]
    line = json.loads(run(*words, "--format", "json", "--json"))
    assert (line["class"], line["rather_than"]) == ("3", "8")
    written = json.loads((tmp_path / "digit.json").read_text())
    difference = float(expected.logits[0, 3] - expected.logits[0, 8])
    assert np.sum(written["why"]) == pytest.approx(difference, abs=1e-3)
    assert line["evidence_for"] - line["evidence_against"] == pytest.approx(difference, abs=1e-3)
    run(*words)
    assert (tmp_path / "digit.png").stat().st_size > 0


@pytest.mark.parametrize("words", [["--class", "cat"], ["--why", "3", "cat"]])
def test_an_unknown_class_is_refused_before_anything_is_written(model_folder, digit, tmp_path, words):
    with pytest.raises(ConfigError, match="'cat'"):
        run("explain", digit, "--model", model_folder, "--out", tmp_path / "out", *words)
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_read_is_named_and_the_rest_is_explained(model_folder, digit, tmp_path):
    shutil.copy(digit, tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes(b"no picture")
    words = ["explain", str(tmp_path), "--model", str(model_folder), "--out", str(tmp_path / "out"), "--json"]
    result = runner.invoke(app, words)
    assert isinstance(result.exception, DataError)
    assert "1 of 2 pictures" in str(result.exception)
    bad, good = sorted((json.loads(line) for line in result.stdout.splitlines()), key=lambda x: x["picture"])
    assert "cannot be read" in bad["error"]
    assert (tmp_path / "out" / "good.png").exists()
    assert good["written"] == str(tmp_path / "out" / "good.png")
    assert "bad.png" in result.stderr


def test_no_file_is_written_twice_and_no_picture_is_written_over(tmp_path):
    for name in ("a/1.png", "b/1.png", "b/1.jpg", "b/deep/2.png", "b/.hidden/3.png", "b/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    tasks = plan([tmp_path / "a" / "1.png", tmp_path / "b"], tmp_path / "a", "png")
    written = [str(task.target.relative_to(tmp_path / "a")) for task in tasks]
    assert [str(task.picture.relative_to(tmp_path)) for task in tasks] == [
        "a/1.png",
        "b/1.jpg",
        "b/1.png",
        "b/deep/2.png",
    ]
    assert written == ["1-2.png", "1-3.png", "1-4.png", "deep/2.png"]


def test_nothing_to_explain_is_an_error(model_folder, black_box_folder, digit, tmp_path):
    with pytest.raises(DataError):
        run("explain", tmp_path / "nothing.png", "--model", model_folder)
    with pytest.raises(DataError):
        run("explain", tmp_path, "--model", model_folder)
    with pytest.raises(NotApplicableError, match="black box"):
        run("explain", digit, "--model", black_box_folder)


def test_overlays_regions_and_a_table_over_all_files(model_folder, digit, tmp_path):
    with Image.open(digit) as picture:
        picture.resize((56, 84)).save(tmp_path / "tall.png")
    (tmp_path / "bad.png").write_bytes(b"no picture")
    words = ["explain", str(tmp_path), "--model", str(model_folder), "--out", str(tmp_path / "out"),
             "--overlay", "--regions", "--csv", str(tmp_path / "table.csv"),
             "--abstain", "1"]  # fmt: skip
    result = runner.invoke(app, words)
    assert isinstance(result.exception, DataError)
    assert "below the threshold: abstain" in result.stdout
    with Image.open(tmp_path / "out" / "tall.overlay.png") as drawn:
        assert drawn.size == (56, 84)
        red, green, blue = drawn.getpixel((28, 2))  # the model does not see this far up: grey
        assert red == green == blue
    regions = json.loads((tmp_path / "out" / "tall.geojson").read_text())
    rings = [ring for feature in regions["features"] for ring in feature["geometry"]["coordinates"]]
    assert rings
    assert all(0 <= x <= 56 and 14 <= y <= 70 for ring in rings for x, y in ring)
    with (tmp_path / "table.csv").open() as file:
        bad, tall = csv.DictReader(file)
    assert "cannot be read" in bad["error"]
    assert tall["abstain"] == "True"
    assert -1 <= float(tall["deletion_check"]) <= 1


def test_tiles_give_regions_of_the_whole_picture(model_folder, digit, tmp_path):
    with Image.open(digit) as picture:
        picture.resize((70, 28)).save(tmp_path / "wide.png")
    words = [
        "explain",
        tmp_path / "wide.png",
        "--model",
        model_folder,
        "--out",
        tmp_path / "out",
        "--tiles",
        "fit",
    ]
    line = json.loads(run(*words, "--regions", "--overlay", "--json"))
    assert "deletion_check" not in line
    found = json.loads((tmp_path / "out" / "wide.geojson").read_text())["features"]
    assert {feature["properties"]["class"] for feature in found} == {line["class"]}
    xs = [x for feature in found for ring in feature["geometry"]["coordinates"] for x, _ in ring]
    assert 0 <= min(xs) < max(xs) <= 70
    with pytest.raises(ConfigError, match="--tiles"):
        run(*words, "--abstain", 0)


def test_hostile_names_command_neither_the_terminal_nor_a_spreadsheet(
    model_folder, digit, tmp_path, monkeypatch
):
    name = "=\x1b[31mcmd.png"
    shutil.copy(digit, tmp_path / name)
    (tmp_path / "=\x1b[2Jbroken.png").write_bytes(b"no picture")
    monkeypatch.chdir(tmp_path)
    words = ["explain", name, "=\x1b[2Jbroken.png", "--model", str(model_folder), "--csv", "t.csv"]
    result = runner.invoke(app, words)
    assert "=\\x1b[31mcmd.png" in result.output
    assert "\x1b" not in result.output
    with (tmp_path / "t.csv").open(newline="") as file:
        assert {row["picture"] for row in csv.DictReader(file)} == {
            "'=\\x1b[31mcmd.png",
            "'=\\x1b[2Jbroken.png",
        }
