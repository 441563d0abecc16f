"""The commands as a person types them, on tiny models and the embedded digits."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from torchsite.cli import app
from torchsite.cli.train import parse_fields
from torchsite.data import load_dataset, to_float
from torchsite.errors import ConfigError, DataError, NotApplicableError
from torchsite.model import SITE, BlackBox
from torchsite.results import Result

TINY = {"widths": [4, 4, 4], "code": 8, "trunk": [4, 4, 4]}
runner = CliRunner()


def run(*words):
    result = runner.invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    model = SITE("identity", "trunk", 10, image_shape=(1, 28, 28), generator_options=TINY)
    return model.save_pretrained(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def digit(tmp_path_factory):
    pixels = load_dataset("mnist_sample", "test").images[0, 0].numpy()
    path = tmp_path_factory.mktemp("pictures") / "digit.png"
    Image.fromarray(pixels).save(path)
    return path


def test_train_takes_any_field_of_the_recipe(tmp_path):
    folder = tmp_path / "run"
    output = run(
        "train", "mnist_sample", "--out", folder, "--limit", 256, "--epochs", 1, "--n-validation", 20,
        "--model.generator-options", json.dumps(TINY), "--max-shift=0.1",
    )  # fmt: skip
    assert "accuracy" in output
    trained = SITE.from_pretrained(folder / "model")
    assert trained.config.family.max_shift == 0.1
    assert Result.load(folder / "result.json").config["training"]["epochs"] == 1


def test_train_refuses_an_unknown_field_and_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'epochs'"):
        run("train", "mnist_sample", "--epoch", 1)


@pytest.mark.parametrize("words", [["3"], ["--epochs"], ["--epochs", "--seed", "1"]])
def test_fields_without_values_are_errors(words):
    with pytest.raises(ConfigError):
        parse_fields(words)


def test_explain_writes_a_picture_and_says_what_it_saw(model_folder, digit, tmp_path):
    output = run("explain", digit, "--model", model_folder, "--out", tmp_path)
    assert "then" in output
    with Image.open(tmp_path / "digit.png") as picture:
        assert picture.size[0] > 100


def test_explain_gives_the_numbers_of_the_model(model_folder, digit, tmp_path):
    run("explain", digit, "--model", model_folder, "--out", tmp_path, "--format", "npz")
    images = to_float(load_dataset("mnist_sample", "test").images[:1])
    expected = SITE.from_pretrained(model_folder).explain(images)
    with np.load(tmp_path / "digit.npz") as arrays:
        torch.testing.assert_close(
            torch.from_numpy(arrays["logits"]), expected.logits[0], atol=1e-4, rtol=1e-4
        )
        np.testing.assert_allclose(arrays["heatmaps"].sum((1, 2)), arrays["logits"], rtol=1e-4, atol=1e-4)


def test_explain_reads_folders_and_prints_json(model_folder, digit, tmp_path):
    output = run("explain", digit.parent, "--model", model_folder, "--out", tmp_path, "--json")
    line = json.loads(output)
    assert line["probability"] >= line["runner_up_probability"]
    assert line["picture"].endswith("digit.png")


def test_explain_refuses_what_it_cannot(model_folder, tmp_path):
    with pytest.raises(DataError, match="no picture"):
        run("explain", tmp_path / "nothing.png", "--model", model_folder)
    black_box = BlackBox("identity", 3, image_shape=(1, 9, 9), encoder_options={"widths": [2, 2], "code": 4})
    with pytest.raises(NotApplicableError, match="black box"):
        run("explain", tmp_path, "--model", black_box.save_pretrained(tmp_path / "black"))


def test_evaluate_writes_a_result_file(model_folder, tmp_path):
    output = run("evaluate", model_folder, "--limit", 20, "--out", tmp_path / "result.json")
    assert "self-consistency, floor" in output
    values = Result.load(tmp_path / "result.json").values
    assert values["completeness"]["worst"] <= 1e-4


def test_reproduce_lists_and_refuses():
    assert "generators" in run("reproduce")
    with pytest.raises(ConfigError, match="did you mean 'mnist'"):
        run("reproduce", "mnst")


def test_data_and_models_tell_what_there_is():
    assert "mnist_sample" in run("data")
    assert "5,000" in run("data", "mnist_sample")
    assert "kind" in run("models")


def test_demo_writes_a_report_that_needs_no_network(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "torchsite.cli.demo.load_dataset", lambda name, split: load_dataset(name, split)[:300]
    )
    output = run("demo", "--out", tmp_path, "--epochs", 1)
    page = (tmp_path / "report.html").read_text()
    assert "report.html" in output
    assert page.count("data:image/png;base64,") == 3
    assert "http" not in page
