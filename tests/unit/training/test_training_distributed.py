"""Two processes reach the weights of one; a process that dies is started again and nothing is lost."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from distributed_work import train
from safetensors.torch import load_file
from torch import nn

from torchsite.errors import ConfigError
from torchsite.model import SITE
from torchsite.results import Result
from torchsite.training import checkpoints, fit
from torchsite.training.batchnorm import GlobalBatchNorm, global_statistics
from torchsite.training.launch import launch_options, leave
from training_makers import digits, equivariance, make_config, make_site, transformation


def mean(**options):
    return transformation(targets="mean", **options)


CASES = {
    "learned bank": {
        "extractor": "pyramid",
        "terms": [transformation(), equivariance()],
    },
    "calibrated direct term": {
        "extractor": "pyramid",
        "terms": [mean(), equivariance(form="calibrated", unseen="silent", hidden=0.2)],
    },
    "learned means": {"extractor": "pyramid", "terms": [mean()], "accumulate": 2},
    "clock": {"extractor": "identity", "terms": [mean()], "epochs": 50, "seconds": 10.0, "pace": 2.0},
    "sampled": {
        "extractor": "pyramid",
        "terms": [transformation(targets="sampled")],
        "optimiser": "muon",
    },
}


def torchrun(folder, cases, *options):
    """Two processes of one `torchrun`; what they say, and an error if they fail."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return start(folder, cases, [*command, *options])


def start(folder, cases, command):
    """Run the script and all that it starts in a group of its own, which ends with the test."""
    script = Path(__file__).parent / "distributed_work.py"
    words = [*command, str(script), str(folder), json.dumps(cases)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True) as started:
        try:
            said = started.communicate()[1]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 0, said[-3000:]
    return said


def logged(folder):
    with (folder / "logs" / "metrics.csv").open() as lines:
        return [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(lines)]


def train_here(folder, case, monkeypatch):
    """The same in this process, whose clock is then as it was."""
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "time", time)
        train(folder, **case)


@pytest.mark.slow
def test_two_processes_do_what_one_does(tmp_path, monkeypatch):
    torchrun(tmp_path / "two", CASES)
    for name, case in CASES.items():
        one, two = tmp_path / "one" / name, tmp_path / "two" / name
        train_here(one, case, monkeypatch)
        assert_same_run(one, two, name)


def test_devices_start_their_processes_themselves(tmp_path):
    case = CASES["calibrated direct term"] | {"epochs": 1}
    started = {"two": case | {"options": {"devices": 2, "accelerator": "cpu"}}}
    start(tmp_path, started, [sys.executable])
    train(tmp_path / "one", **case)
    assert_same_run(tmp_path / "one", tmp_path / "two", "devices=2")


def assert_same_run(one, two, name):
    """Logs, weights and measures agree to rounding in double precision."""
    for mine, theirs in zip(logged(one), logged(two), strict=True):
        assert theirs == pytest.approx(mine, rel=1e-6, abs=1e-6), name
    weights, others = (load_file(folder / "model" / "model.safetensors") for folder in (one, two))
    for key, tensor in weights.items():
        torch.testing.assert_close(others[key], tensor, rtol=1e-6, atol=1e-8)
    values, found = (Result.load(folder / "result.json").values for folder in (one, two))
    assert found == pytest.approx(values, rel=1e-5), "some pictures were counted twice, or not at all"


@pytest.mark.slow
def test_a_rank_that_dies_is_started_again_from_the_last_checkpoint(tmp_path):
    case = {"extractor": "identity", "checkpoint_seconds": 0, "optimiser": "muon"}
    said = torchrun(tmp_path, {"killed": case | {"kill_after": 3}}, "--max-restarts", "1")
    assert "-9" in said
    assert (tmp_path / "killed" / "steps.txt").read_text() == "1 2 3 4 5 6 "
    weights = load_file(tmp_path / "killed" / "model" / "model.safetensors")
    train(tmp_path / "whole", **case)
    for key, tensor in load_file(tmp_path / "whole" / "model" / "model.safetensors").items():
        torch.testing.assert_close(weights[key], tensor, rtol=1e-6, atol=1e-8)


def test_batch_norm_gets_its_layers_back():
    model = make_site("pyramid")
    layers = {name: module for name, module in model.named_modules() if "Norm" in type(module).__name__}
    kinds = {name: type(module) for name, module in layers.items()}
    assert {nn.BatchNorm1d, nn.BatchNorm2d} <= set(kinds.values())
    with global_statistics(model), global_statistics(model):
        norms = [module for module in layers.values() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
        assert all(isinstance(module, GlobalBatchNorm) for module in norms)
    assert {name: type(module) for name, module in layers.items()} == kinds
    assert dict(model.named_modules()).items() >= layers.items()


def test_fabric_is_told_what_torchrun_started():
    started = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}
    assert launch_options(started) == {"devices": 4, "num_nodes": 2, "strategy": "ddp"}
    assert launch_options({}) == launch_options(started | {"WORLD_SIZE": "1"}) == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"devices": 0}, "cannot be trained on"),
        ({"accelerator": "abacus"}, "cannot be trained on"),
    ],
)
def test_devices_that_cannot_work_are_refused(options, words, tmp_path):
    with pytest.raises(ConfigError, match=words):
        fit(make_site(), digits(), make_config(), validation=digits(20, "test"), folder=tmp_path, **options)


class PlainGenerator(nn.Module):
    """Without batch norm, so that no picture knows of the others."""

    def __init__(self):
        super().__init__()
        self.draw = nn.Conv2d(1, 10, 3, padding=1)

    def forward(self, features):
        return self.draw(features).unsqueeze(2)


@pytest.mark.slow
@pytest.mark.parametrize("terms", [[transformation()], [transformation(targets="sampled"), equivariance()]])
def test_accumulated_parts_make_the_gradient_of_the_whole(terms, tmp_path):
    found = {}
    for parts in (1, 4):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = SITE("identity", PlainGenerator(), 10, image_shape=(1, 28, 28)).double()
        folder = tmp_path / str(parts)
        train(folder, None, model=model, accumulate=parts, collapse_patience=9, terms=terms)
        found[parts] = load_file(folder / "model" / "model.safetensors"), logged(folder)
    for key, tensor in found[1][0].items():
        torch.testing.assert_close(found[4][0][key], tensor, rtol=1e-9, atol=1e-12)
    for mine, theirs in zip(found[1][1], found[4][1], strict=True):
        assert theirs == pytest.approx(mine, rel=1e-6, abs=1e-6)


def test_parts_must_divide_the_batch():
    for parts in (5, 32):
        with pytest.raises(ConfigError, match=r"accumulate: .*batch_size = 32"):
            make_config(accumulate=parts)


def test_leaving_ends_the_group_once(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    leave()
    assert not dist.is_initialized()
    leave()
