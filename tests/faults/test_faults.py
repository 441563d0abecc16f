"""What pulls the plug: signals, full disks, damaged files, numbers that are none."""

import json
import os
import resource
import shutil
import signal

import pytest
import torch
from fault_runs import Poisoned, make_model, newest, run, start, wait_for_step, weights_of, with_white

from torchsite.errors import StoppedError, TrainingError
from torchsite.randomness import make_rng
from torchsite.training import Callback
from torchsite.training.checkpoints import checkpoints, last_checkpoint


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An undisturbed run."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    run(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("told", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_told_to_stop_a_run_saves_and_exits_with_the_signals_code(told, code, tmp_path):
    process = start(tmp_path / "run", 200)
    wait_for_step(tmp_path / "run", process)
    os.kill(process.pid, told)
    process.join()
    assert process.exitcode == code
    assert last_checkpoint(tmp_path / "run") is not None
    before = newest(tmp_path / "run")
    with pytest.raises(StoppedError):
        run(tmp_path / "run", 200, callbacks=[Stop(3, told)])
    assert newest(tmp_path / "run") > before, "it went on from where it stopped"


class Stop(Callback):
    """Sends the process a signal at a step counted from the start of this attempt, so often."""

    def __init__(self, after, told=signal.SIGTERM, times=1):
        self.left, self.told, self.times = after, told, times

    def step_begins(self, run, batch):
        self.left -= 1
        if self.left == 0:
            for _ in range(self.times):
                os.kill(os.getpid(), self.told)


@pytest.mark.parametrize("after", [1, 3, 6])
def test_told_to_stop_at_any_step_a_run_ends_with_the_same_bits(after, tmp_path, whole):
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(StoppedError, match=f"after step {after}: "):
        run(tmp_path, callbacks=[Stop(after)])
    assert signal.getsignal(signal.SIGTERM) == handler, "signals are as they were"
    run(tmp_path)
    assert weights_of(tmp_path) == weights_of(whole)


def test_a_second_interrupt_does_not_wait_for_the_step(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, callbacks=[Stop(2, signal.SIGINT, times=2)])


class StopWhenMeasured(Callback):
    """Sends SIGINT during the last validation."""

    def validated(self, run, measures, seconds):
        os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_during_the_last_validation_stops_with_all_steps_saved(tmp_path, whole):
    with pytest.raises(StoppedError):
        run(tmp_path, callbacks=[StopWhenMeasured()])
    run(tmp_path)
    assert weights_of(tmp_path) == weights_of(whole)


def test_a_disk_that_is_full_leaves_the_checkpoint_before(tmp_path, whole):
    shutil.copytree(whole, tmp_path / "run")
    for path in checkpoints(tmp_path / "run" / "checkpoints")[:1]:
        size = path.stat().st_size
        path.unlink()  # one step is missing
    before = last_checkpoint(tmp_path / "run")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, hard))
    try:
        with pytest.raises(TrainingError, match="checkpoint"):
            run(tmp_path / "run")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert last_checkpoint(tmp_path / "run") == before
    assert not list(tmp_path.rglob("*.part"))
    run(tmp_path / "run")
    assert weights_of(tmp_path / "run") == weights_of(whole)


@pytest.mark.parametrize("kind", ["truncated", "flipped"])
def test_any_damage_to_a_checkpoint_is_noticed(kind, tmp_path, whole):
    """At random places, many times: the checksum sees every bit."""
    rng = make_rng(0, kind)
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    newest_path, previous = checkpoints(folder / "checkpoints")
    content = newest_path.read_bytes()
    for _ in range(50):
        place = int(torch.randint(len(content), (), generator=rng))
        damaged = bytearray(content[:place] if kind == "truncated" else content)
        if kind == "flipped":
            damaged[place] ^= 1 << int(torch.randint(8, (), generator=rng))
        newest_path.write_bytes(damaged)
        assert last_checkpoint(folder) == previous
    run(folder)
    assert weights_of(folder) == weights_of(whole)


def test_the_pictures_that_make_no_number_are_named(tmp_path):
    bad = {17, 60}
    with pytest.raises(TrainingError, match="on the pictures numbered") as error:
        run(tmp_path, model=make_model(Poisoned()), data=with_white(bad))
    named = json.loads(str(error.value).split("numbered ")[1].split("]")[0] + "]")
    assert bad & set(named)
    assert len(named) == 32
