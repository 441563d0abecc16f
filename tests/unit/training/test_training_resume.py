"""A run that was interrupted goes on to the very weights it would have reached."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch

import experiments  # noqa: F401  # whose terms are known by name
from torchsite.errors import ConfigError, TrainingError
from torchsite.randomness import make_rng
from torchsite.training import Callback
from torchsite.training import checkpoints as saving
from torchsite.training.checkpoints import checkpoints, last_checkpoint, publish
from training_makers import (
    digest,
    digits,
    equivariance,
    make_black_box,
    make_config,
    make_site,
    run,
    transformation,
)


class CopyEachStep(Callback):
    """Keeps the run's folder as it is before each next step: what a kill would leave."""

    def __init__(self, folder, copies):
        self.folder, self.copies = folder, copies

    def step_begins(self, run, batch):
        if run.steps_done:
            shutil.copytree(self.folder, self.copies / str(run.steps_done))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (make_site, {"optimiser": "muon"}),
        (lambda: make_site("pyramid"), {"terms": [transformation(targets="mean")]}),
        (lambda: make_site("pyramid"), {"terms": [transformation(), equivariance()]}),
        (
            make_site,
            {
                "terms": [
                    transformation(choose="best"),
                    {"name": "readable_prototypes", "readers": ["pooled"], "reader_epochs": 1.0},
                ]
            },
        ),
        (make_black_box, {}),
    ],
)
def test_from_every_step_the_same_bits_are_reached(make, changes, tmp_path):
    config = make_config(checkpoint_seconds=0, **changes)
    copy = CopyEachStep(tmp_path / "whole", tmp_path / "copies")
    whole = run(tmp_path / "whole", make(), config=config, callbacks=[copy])
    folders = sorted((tmp_path / "copies").iterdir())
    assert [folder.name for folder in folders] == ["1", "2", "3", "4", "5"]
    for folder in [*folders, tmp_path / "whole"]:
        resumed = run(folder, make(), config=config, resume=True)
        assert digest(resumed.model) == digest(whole.model), folder.name
        assert resumed.measures == whole.measures, folder.name
        assert digest_of_file(folder) == digest_of_file(tmp_path / "whole")


def digest_of_file(folder):
    return (folder / "model" / "model.safetensors").read_bytes()


class StopAfter(Callback):
    """Interrupts the run after some steps and notes all steps that are taken."""

    def __init__(self, n_steps, seen):
        self.n_steps, self.seen = n_steps, seen

    def step_begins(self, run, batch):
        if self.n_steps == 0:
            raise InterruptedError
        self.n_steps -= 1
        self.seen.append((run.steps_done, *divmod(run.steps_done, run.steps_per_epoch), batch.rows.tolist()))


@pytest.mark.parametrize("pattern", [[1], [3], [2, 1, 3, 1, 4]])
def test_however_often_it_is_interrupted_a_run_takes_the_same_steps(pattern, tmp_path):
    config = make_config(epochs=3, checkpoint_seconds=0, validate_every=2)
    expected, seen = [], []
    whole = run(tmp_path / "whole", config=config, callbacks=[StopAfter(10**9, expected)])
    for n_steps in pattern * 10:
        try:
            resumed = run(
                tmp_path / "parts", config=config, resume=True, callbacks=[StopAfter(n_steps, seen)]
            )
        except InterruptedError:
            continue
        break
    assert seen == expected
    assert digest(resumed.model) == digest(whole.model)


# kill -9


def work(folder, epochs):
    """One attempt at the run; ends by itself or by a signal."""
    torch.set_num_threads(1)
    run(Path(folder), checkpoint_seconds=0, epochs=epochs, resume=True)


@pytest.mark.slow
def test_kills_at_any_time_change_nothing(tmp_path):
    epochs = 5
    whole = run(tmp_path / "whole", epochs=epochs, checkpoint_seconds=0)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torchsite.training", "torchsite.data"])
    folder, kills, delays = tmp_path / "killed", 0, make_rng(int(time.time()), "kills")
    for _ in range(10):
        process = context.Process(target=work, args=(str(folder), epochs), daemon=True)
        process.start()
        wait_for_progress(folder, process)
        if kills < 3:
            process.join(float(torch.rand((), generator=delays)) * 0.2)
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert process.exitcode == 0
    assert kills >= 1
    assert digest_of_file(folder) == digest_of_file(tmp_path / "whole")
    assert digest(run(folder, epochs=epochs, resume=True).model) == digest(whole.model)


def wait_for_progress(folder, process):
    """Until the process has written a checkpoint that was not there before."""
    before = {path.name for path in checkpoints(folder / "checkpoints")}
    while process.is_alive() and {path.name for path in checkpoints(folder / "checkpoints")} <= before:
        time.sleep(0.005)


# Checkpoints, one by one


def write(folder, content):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "writing.part").write_bytes(content)
    return publish(folder / "writing.part")


def test_two_checkpoints_are_kept_and_the_newest_is_found(tmp_path):
    folder = tmp_path / "checkpoints"
    for i in range(12):
        newest = write(folder, bytes([i]))
        assert last_checkpoint(tmp_path) == newest
        assert len(checkpoints(folder)) == min(2, i + 1)
    assert {path.read_bytes() for path in folder.iterdir()} == {bytes([10]), bytes([11])}


def test_at_every_system_call_of_a_save_a_whole_checkpoint_is_there(tmp_path, monkeypatch):
    """Stop after the n-th change to the file system, for every n: the last or the one before is found."""
    for stop in range(1, 4):
        for existing in range(1, 4):
            folder = tmp_path / f"{stop}-{existing}" / "checkpoints"
            for i in range(existing):
                write(folder, bytes([i]))
            calls = 0

            def counted(change, stop=stop):
                def call(*arguments, **options):
                    nonlocal calls
                    calls += 1
                    if calls == stop:
                        raise KeyboardInterrupt  # where a kill would fall: before this change
                    return change(*arguments, **options)

                return call

            with monkeypatch.context() as patch:
                for name in ("replace", "unlink"):
                    patch.setattr(Path, name, counted(getattr(Path, name)))
                with contextlib.suppress(KeyboardInterrupt):
                    write(folder, b"new")
            found = last_checkpoint(folder.parent)
            assert found is not None
            assert found.read_bytes() in (b"new", bytes([existing - 1]))
            write(folder, b"newer")
            assert last_checkpoint(folder.parent).read_bytes() == b"newer"


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: b"x" + content[1:]])
def test_a_damaged_newest_checkpoint_is_passed_over(damage, tmp_path, caplog):
    config = make_config(checkpoint_seconds=0)
    whole = run(tmp_path, config=config)
    newest, previous = checkpoints(tmp_path / "checkpoints")
    newest.write_bytes(damage(newest.read_bytes()))
    assert last_checkpoint(tmp_path) == previous
    assert "damaged" in caplog.text
    assert digest(run(tmp_path, config=config, resume=True).model) == digest(whole.model)


def test_a_run_whose_checkpoints_are_all_damaged_says_so(tmp_path):
    config = make_config(checkpoint_seconds=0)
    run(tmp_path, config=config)
    for path in checkpoints(tmp_path / "checkpoints"):
        path.write_bytes(b"")
    with pytest.raises(TrainingError, match="checkpoints"):
        run(tmp_path, config=config, resume=True)


def test_a_full_disk_stops_the_run_and_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    config = make_config(checkpoint_seconds=0)
    whole = run(tmp_path / "whole", config=config)
    calls = 0

    def full(temporary):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(28, "No space left on device")
        return publish(temporary)

    with monkeypatch.context() as patch:
        patch.setattr(saving, "publish", full)
        with pytest.raises(TrainingError, match=r"No space left on device.*resume=True"):
            run(tmp_path / "full", config=config)
    assert not list(tmp_path.rglob("*.part"))
    assert last_checkpoint(tmp_path / "full") is not None
    assert digest(run(tmp_path / "full", config=config, resume=True).model) == digest(whole.model)


def test_checkpoints_are_read_without_unpickling_objects(tmp_path, monkeypatch):
    config, read = make_config(optimiser="muon"), []
    run(tmp_path, config=config)
    load = torch.load

    def watched(*arguments, **options):
        read.append(options.get("weights_only"))
        return load(*arguments, **options)

    monkeypatch.setattr(torch, "load", watched)
    run(tmp_path, config=config, resume=True)
    assert read
    assert all(read)


def test_a_checkpoint_that_holds_an_object_is_refused(tmp_path):
    run(tmp_path)
    (newest,) = checkpoints(tmp_path / "checkpoints")
    state = torch.load(newest, weights_only=True)
    torch.save(state | {"extra": Path("/")}, tmp_path / "checkpoints" / "writing.part")
    publish(tmp_path / "checkpoints" / "writing.part")
    with pytest.raises(Exception, match=r"(?i)weights.only"):
        run(tmp_path, resume=True)


@pytest.mark.parametrize("other", [{"format": 1}, {"global_step": 6, "loops": {}}])
def test_a_checkpoint_of_another_version_is_refused_with_what_to_do(other, tmp_path):
    run(tmp_path)
    torch.save(other, tmp_path / "checkpoints" / "writing.part")
    publish(tmp_path / "checkpoints" / "writing.part")
    with pytest.raises(TrainingError):
        run(tmp_path, resume=True)


# A run goes on as it was begun


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"learning_rate": 0.1}, r"training\.learning_rate was 0\.003, is 0\.1"),
        ({"epochs": 3}, r"training\.epochs was 2, is 3"),
        ({"seed": 1}, r"training\.seed was 0, is 1"),
    ],
)
def test_a_changed_configuration_is_refused(changes, words, tmp_path):
    run(tmp_path)
    with pytest.raises(ConfigError, match=words):
        run(tmp_path, resume=True, **changes)


def test_another_model_or_other_data_are_refused(tmp_path):
    run(tmp_path)
    with pytest.raises(ConfigError, match=r"model\.feature_extractor was 'identity', is 'pyramid'"):
        run(tmp_path, make_site("pyramid"), resume=True)
    with pytest.raises(ConfigError, match=r"data\.fingerprint"):
        run(tmp_path, resume=True, data=digits(110)[10:])


def test_what_does_not_touch_the_weights_may_change(tmp_path):
    first = run(tmp_path)
    free = make_config(checkpoint_seconds=7, validate_every=2, n_validation=10, collapse_patience=3)
    assert digest(run(tmp_path, config=free, resume=True).model) == digest(first.model)


def test_resuming_where_nothing_was_begun_begins(tmp_path):
    first = run(tmp_path / "a", resume=True)
    assert digest(first.model) == digest(run(tmp_path / "b").model)


def test_the_logs_and_the_time_of_all_parts_are_kept(tmp_path):
    config = make_config(checkpoint_seconds=0)
    copy = CopyEachStep(tmp_path / "whole", tmp_path / "copies")
    run(tmp_path / "whole", config=config, callbacks=[copy])
    folder = tmp_path / "copies" / "4"
    earlier = torch.load(last_checkpoint(folder), weights_only=True)["seconds"]
    logs = (folder / "logs" / "metrics.csv").read_bytes()
    found = run(folder, config=config, resume=True)
    assert (folder / "logs" / "metrics-1.csv").read_bytes() == logs
    assert (folder / "logs" / "metrics.csv").exists()
    assert found.seconds > earlier > 0
