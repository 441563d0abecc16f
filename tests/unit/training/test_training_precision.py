"""Precision: bfloat16 where it is faster here, said, stored, and kept when a run goes on."""

import json
import logging
import os
import subprocess
import sys

import pytest
import torch

import training_makers
from torchsite.errors import ConfigError
from torchsite.results import Result
from torchsite.training import TrainingConfig, precision
from torchsite.training.precision import Precision, choose_precision
from torchsite.training.recipes import load_recipe, shipped_recipes
from training_makers import digest, make_site

CPU = torch.device("cpu")


@pytest.fixture
def timed(monkeypatch):
    """Pretends that a convolution takes so long in float32 and in bfloat16."""

    def pretend(plain, half):
        precision._measured.cache_clear()
        monkeypatch.setattr(precision, "time_convolution", lambda: (plain, half))

    yield pretend
    precision._measured.cache_clear()


def test_auto_is_the_default_of_the_training_and_of_all_recipes():
    assert TrainingConfig().precision == "auto"
    assert {load_recipe(name).training.precision for name in shipped_recipes()} == {"auto"}


@pytest.mark.parametrize(
    ("plain", "half", "expected"), [(1.0, 0.5, "bf16"), (1.0, 0.95, "32"), (1.0, 12.0, "32")]
)
def test_the_faster_one_is_taken_and_said(plain, half, expected, timed, caplog):
    timed(plain, half)
    with caplog.at_level(logging.INFO, logger="torchsite.training.precision"):
        found = choose_precision("auto", CPU)
    assert found.chosen == expected
    assert f"{1000 * half:.1f} ms in bfloat16" in found.why
    assert f"precision: {expected}, because a convolution takes" in caplog.text


def test_what_is_asked_for_is_not_measured(timed, monkeypatch):
    monkeypatch.setattr(precision, "time_convolution", pytest.fail)
    for asked in ("32", "bf16"):
        assert choose_precision(asked, CPU) == Precision(asked, "as the recipe asks")


def test_both_times_are_measured_and_change_nothing():
    state = torch.get_rng_state()
    plain, half = precision.time_convolution()
    assert 0 < plain < 5
    assert half > 0
    assert torch.equal(torch.get_rng_state(), state)


def run(folder, resume=False):
    changes = {"precision": "auto", "checkpoint_seconds": 0}
    return training_makers.run(folder, make_site("pyramid"), resume=resume, **changes)


def test_a_run_stores_its_precision_and_goes_on_with_it(timed, tmp_path):
    timed(1.0, 0.5)
    begun = run(tmp_path / "a")
    description = json.loads((tmp_path / "a" / "run.json").read_text())
    assert description["precision"]["chosen"] == "bf16"
    assert Result.load(tmp_path / "a" / "result.json").config["precision"]["chosen"] == "bf16"
    newest, previous = sorted((tmp_path / "a" / "checkpoints").iterdir(), reverse=True)
    assert torch.load(newest, weights_only=True)["precision"] == "bf16"
    newest.unlink()
    timed(1.0, 9.0)  # by now the machine would choose otherwise
    assert digest(run(tmp_path / "a", resume=True).model) == digest(begun.model)
    assert digest(run(tmp_path / "b").model) != digest(begun.model)
    assert previous.name[:8] < newest.name[:8]


def test_a_run_that_does_not_say_its_precision_is_refused(timed, tmp_path):
    timed(1.0, 2.0)
    run(tmp_path)
    path = tmp_path / "run.json"
    described = json.loads(path.read_text())
    path.write_text(json.dumps({name: part for name, part in described.items() if name != "precision"}))
    with pytest.raises(ConfigError, match="precision"):
        run(tmp_path, resume=True)


@pytest.mark.slow
def test_a_processor_that_only_emulates_bfloat16_trains_in_float32():
    """As a machine with AVX2 and nothing newer, whatever this one has."""
    code = (
        "import torch; torch.set_num_threads(1); from torchsite.training.precision import choose_precision;"
        "print(choose_precision('auto', torch.device('cpu')).chosen)"
    )
    old = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | old, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "32"
