"""`torchsite train` as a person types it, on the embedded digits."""

import json

import pytest
from running import run

from torchsite.cli.train import parse_fields
from torchsite.errors import ConfigError
from torchsite.model import SITE
from torchsite.results import Result

TINY = {"widths": [4, 4, 4], "code": 8, "trunk": [4, 4, 4]}


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
    with pytest.raises(ConfigError, match="'epochs'"):
        run("train", "mnist_sample", "--epoch", 1)


@pytest.mark.parametrize("words", [["3"], ["--epochs"], ["--epochs", "--seed", "1"]])
def test_fields_without_values_are_errors(words):
    with pytest.raises(ConfigError):
        parse_fields(words)
