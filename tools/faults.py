"""The long campaign of faults: each tried many times, each outcome noted.

    python tools/faults.py [--times 20] [--only kill_9 …] [--out results/faults.json]

Every fault falls on a small run (`tests/faults/fault_runs.py`) that saves after each step; the run is then
resumed and must end with the very bits of an undisturbed one. Results of a part of the faults are merged
into the file that is there.
"""

import argparse
import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from torchsite.data import load_dataset
from torchsite.errors import StoppedError, TrainingError
from torchsite.objective import Batch
from torchsite.randomness import Rng, make_rng
from torchsite.results import Result
from torchsite.training import Callback
from torchsite.training.checkpoints import checkpoints, last_checkpoint
from torchsite.training.loop import Run

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [
    str(ROOT / "tests" / "faults"),
    str(ROOT / "tests" / "unit" / "training"),
    str(ROOT / "tests"),
]

from distributed_work import train as train_distributed
from fault_runs import Poisoned, make_model, newest, run, start, wait_for_step, weights_of, with_white

EPOCHS = 10
STEPS = 3 * EPOCHS


@dataclass
class Attempt:
    """Where a fault is tried, with what, and what an undisturbed run reached."""

    folder: Path
    rng: Rng
    expected: str
    notes: dict[str, Any] = field(default_factory=dict)

    def number(self, high: int) -> int:
        """A random number below `high`."""
        return int(torch.randint(high, (), generator=self.rng))

    def fraction(self) -> float:
        """A random number in [0, 1)."""
        return float(torch.rand((), generator=self.rng))

    def copy_of_a_run(self) -> Path:
        """A run that was stopped at a random step, with two checkpoints."""
        folder = self.folder / "run"
        stop = 3 + self.number(STEPS - 3)
        with suppress(StoppedError):
            run(folder, EPOCHS, callbacks=[StopAt(stop)])
        assert len(checkpoints(folder / "checkpoints")) == 2
        return folder

    def ends_the_same(self, folder: Path) -> bool:
        """Whether the resumed run reaches the very bits."""
        run(folder, EPOCHS)
        return weights_of(folder) == self.expected


class StopAt(Callback):
    """Tells the run to stop with a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def step_begins(self, run: Run, batch: Batch) -> None:
        """The signal is heard at the end of the step."""
        if run.steps_done == self.step - 1:
            os.kill(os.getpid(), signal.SIGTERM)


class Fill(Callback):
    """Fills the file system after a step, up to a part of what the next checkpoint needs."""

    def __init__(self, step: int, path: Path, part: float) -> None:
        self.step, self.path, self.part = step, path, part

    def step_begins(self, run: Run, batch: Batch) -> None:
        """All free bytes but those."""
        if run.steps_done == self.step:
            (last, *_rest) = checkpoints(self.path.parent / "run" / "checkpoints")
            free = shutil.disk_usage(self.path.parent).free
            self.path.write_bytes(bytes(max(0, free - int(self.part * last.stat().st_size))))


def kill_9(attempt: Attempt) -> bool:
    """kill -9 at a random moment of a run, one time after the other until it is through."""
    folder, kills = attempt.folder / "run", []
    while True:
        process = start(folder, EPOCHS)
        if not kills or attempt.fraction() < 0.5:
            wait_for_step(folder, process, 1 + attempt.number(STEPS // 2))
        process.join(attempt.fraction() * 0.1)  # somewhere between two steps, or in the middle of a save
        if len(kills) < 3 and process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        if process.exitcode == 0:
            break
        kills.append(newest(folder))
    attempt.notes["kills"] = len(kills)
    attempt.notes["after checkpoints"] = kills
    return bool(kills) and weights_of(folder) == attempt.expected


def sigterm(attempt: Attempt) -> bool:
    """SIGTERM at a random step: exit code 143, a checkpoint of that step, the same end."""
    folder = attempt.folder / "run"
    process = start(folder, EPOCHS)
    wait_for_step(folder, process, 1 + attempt.number(STEPS - 5))
    os.kill(process.pid, signal.SIGTERM)
    process.join()
    attempt.notes["exit code"] = process.exitcode
    return process.exitcode == 143 and attempt.ends_the_same(folder)


def disk_full(attempt: Attempt) -> bool:
    """No room for the next checkpoint after a random number of bytes: a clear error, the old one whole."""
    folder = attempt.copy_of_a_run()
    before = last_checkpoint(folder)
    assert before is not None
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096 + attempt.number(before.stat().st_size - 4096), hard))
    try:
        run(folder, EPOCHS)
        said = ""
    except TrainingError as error:
        said = str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    clean = not list(folder.rglob("*.part"))
    return (
        "make room" in said and clean and last_checkpoint(folder) == before and attempt.ends_the_same(folder)
    )


def tmpfs_full(attempt: Attempt) -> bool:
    """A file system that is full to some bytes while a checkpoint is written: the same."""
    mount = attempt.folder / "small"
    mount.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16M", "tmpfs", str(mount)], check=True)
    try:
        fill = Fill(1 + attempt.number(STEPS - 2), mount / "ballast", attempt.fraction())
        try:
            run(mount / "run", EPOCHS, callbacks=[fill])
            said = ""
        except TrainingError as error:
            said = str(error)
        before = last_checkpoint(mount / "run")
        (mount / "ballast").unlink()
        return "No space left" in said and before is not None and attempt.ends_the_same(mount / "run")
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def truncated(attempt: Attempt) -> bool:
    """The newest checkpoint cut off at a random byte: noticed, the one before is used."""
    folder = attempt.copy_of_a_run()
    last, previous = checkpoints(folder / "checkpoints")
    os.truncate(last, attempt.number(last.stat().st_size))
    return last_checkpoint(folder) == previous and attempt.ends_the_same(folder)


def flipped(attempt: Attempt) -> bool:
    """One random bit of the newest checkpoint flipped: noticed, the one before is used."""
    folder = attempt.copy_of_a_run()
    last, previous = checkpoints(folder / "checkpoints")
    content = bytearray(last.read_bytes())
    content[attempt.number(len(content))] ^= 1 << attempt.number(8)
    last.write_bytes(content)
    return last_checkpoint(folder) == previous and attempt.ends_the_same(folder)


def all_damaged(attempt: Attempt) -> bool:
    """Both checkpoints damaged: an error that says what to do, nothing guessed."""
    folder = attempt.copy_of_a_run()
    for path in checkpoints(folder / "checkpoints"):
        os.truncate(path, attempt.number(path.stat().st_size))
    try:
        run(folder, EPOCHS)
    except TrainingError as error:
        return "begin again in another folder" in str(error)
    return False


def nan_batch(attempt: Attempt) -> bool:
    """Pictures that make the loss NaN: the run stops and names a batch that holds one."""
    bad = {attempt.number(90)}
    try:
        run(attempt.folder / "run", EPOCHS, model=make_model(Poisoned()), data=with_white(bad))
    except TrainingError as error:
        named = set(json.loads(str(error).split("numbered ")[1].split("]")[0] + "]"))
        attempt.notes["named"] = len(named)
        return bad <= named
    return False


def rank_killed(attempt: Attempt) -> bool:
    """kill -9 of one of two processes under torchrun: both start again from the last checkpoint."""
    case = {"extractor": "identity", "checkpoint_seconds": 0, "epochs": 3}
    script = ROOT / "tests" / "unit" / "training" / "distributed_work.py"
    killed = {"killed": case | {"kill_after": 1 + attempt.number(8)}}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    subprocess.run(
        [*command, "--max-restarts", "1", str(script), str(attempt.folder), json.dumps(killed)],
        check=True,
        capture_output=True,
    )
    steps = (attempt.folder / "killed" / "steps.txt").read_text().split()
    train_distributed(attempt.folder / "whole", **case)
    return steps == [str(i) for i in range(1, 10)] and close(
        attempt.folder / "killed", attempt.folder / "whole"
    )


def close(one: Path, other: Path) -> bool:
    """Whether the weights of two runs agree to float64 rounding."""
    from safetensors.torch import load_file

    weights, others = (load_file(folder / "model" / "model.safetensors") for folder in (one, other))
    return all(torch.allclose(weights[name], others[name], rtol=1e-9, atol=1e-9) for name in weights)


def decoding_killed(attempt: Attempt) -> bool:
    """kill -9 while a folder of pictures is decoded: the next process begins again, the cache is whole."""
    from PIL import Image

    root = attempt.folder / "pictures"
    for number in range(600):
        path = root / "train" / ("a" if number % 2 else "b") / f"{number:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (90, 90), (number % 256, number // 256, 0)).save(path)
    environment = os.environ | {"TORCHSITE_CACHE": str(attempt.folder / "cache")}
    code = (
        "import sys; from torchsite.data import load_dataset;"
        "print('go', flush=True); load_dataset(sys.argv[1], size=64)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(root)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    child.stdout.readline()
    cache = attempt.folder / "cache" / "pictures"
    goal = attempt.number(600 * 3 * 64 * 64)
    while child.poll() is None and sum(path.stat().st_size for path in cache.glob(".*/pixels.bin")) < goal:
        time.sleep(0.001)
    child.kill()
    child.wait()
    attempt.notes["left half written"] = len(list(cache.glob(".*/pixels.bin")))
    os.environ["TORCHSITE_CACHE"] = environment["TORCHSITE_CACHE"]
    try:
        data = load_dataset(root, size=64)
    finally:
        del os.environ["TORCHSITE_CACHE"]
    expected = sorted((n % 256, n // 256) for n in range(600))
    return sorted((int(p[0, 0, 0]), int(p[1, 0, 0])) for p in data.images) == expected


FAULTS: dict[str, Callable[[Attempt], bool]] = {
    "kill_9": kill_9,
    "sigterm": sigterm,
    "disk_full": disk_full,
    "tmpfs_full": tmpfs_full,
    "truncated": truncated,
    "flipped": flipped,
    "all_damaged": all_damaged,
    "nan_batch": nan_batch,
    "rank_killed": rank_killed,
    "decoding_killed": decoding_killed,
}
SELDOM = {
    "rank_killed": 4,
    "tmpfs_full": 4,
    "decoding_killed": 2,
    "all_damaged": 4,
    "nan_batch": 2,
}  # one in so many


def try_fault(name: str, times: int, seed: int, expected: str) -> dict[str, Any]:
    """One fault, so many times, each in a folder of its own."""
    survived, notes, start_time = 0, [], time.monotonic()
    for number in itertools.count():
        if number == times or (name == "kill_9" and sum(note.get("kills", 0) for note in notes) >= times):
            break
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        attempt = Attempt(folder, make_rng(seed, name, number), expected)
        good = FAULTS[name](attempt)
        survived += good
        notes.append(attempt.notes)
        if good:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            sys.stdout.write(f"{name}: attempt {number} failed, see {folder}\n")
    tried = len(notes)
    kills = sum(note.get("kills", 0) for note in notes)
    return {
        "what": (FAULTS[name].__doc__ or "").strip(),
        "tried": kills or tried,
        "runs": tried,
        "survived": survived,
        "notes": [note for note in notes if note],
        "seconds": round(time.monotonic() - start_time, 1),
    }


def main() -> int:
    """Try all faults; 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "faults.json")
    args = parser.parse_args()
    start_time = time.monotonic()
    whole = Path(tempfile.mkdtemp(prefix="whole-")) / "run"
    run(whole, EPOCHS)
    expected = weights_of(whole)
    values = dict(Result.load(args.out).values) if args.out.exists() else {}
    for name in args.only:
        if name == "tmpfs_full" and os.geteuid() != 0:
            sys.stdout.write("tmpfs_full: only root may mount a file system, left out\n")
            continue
        values[name] = try_fault(name, max(1, args.times // SELDOM.get(name, 1)), args.seed, expected)
        sys.stdout.write(
            f"{name}: {values[name]['survived']} of {values[name]['runs']} runs ended as they should\n"
        )
        sys.stdout.flush()
        ordered = {key: values[key] for key in FAULTS if key in values}
        config = {"times": args.times, "steps": STEPS, "batch_size": 32}
        Result("faults", ordered, config, args.seed, time.monotonic() - start_time).save(args.out)
    return 0 if all(one["survived"] == one["runs"] for one in values.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
