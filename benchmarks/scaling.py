"""What a training step costs: against pixels, classes, precision, parts, and the number of processes.

    python benchmarks/scaling.py [steps ranks] [--rounds 5] [--out results/scaling.json]

`steps` times single steps in processor time, on one thread; `ranks` times an epoch in one and in two
processes, each on one thread. Results of one are merged into the file that is there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from torchsite.data import Dataset, load_dataset
from torchsite.model import SITE
from torchsite.objective import Share, TransformationTerm
from torchsite.randomness import make_rng
from torchsite.results import Result
from torchsite.training import Callback, TrainingConfig, fit
from torchsite.training.batches import make_batch
from torchsite.training.fit import make_objective
from torchsite.training.loop import Run
from torchsite.training.optimisers import make_optimisers

# Single steps


def noise(n: int, size: int, n_classes: int) -> Dataset:
    """Random pictures; timings do not depend on what they show."""
    images = torch.randint(0, 256, (n, 3, size, size), dtype=torch.uint8, generator=make_rng(0))
    return Dataset(images, torch.arange(n) % n_classes, tuple(str(i) for i in range(n_classes)), "noise")


def make_step(
    *,
    size: int = 32,
    n_classes: int = 10,
    batch: int = 64,
    half: bool = False,
    parts: int = 1,
    compiled: bool = False,
) -> Callable[[], None]:
    """One training step with class-mean targets."""
    data = noise(max(512, 2 * n_classes), size, n_classes)
    config = TrainingConfig(
        epochs=1,
        batch_size=batch,
        accumulate=parts,
        terms=(TransformationTerm(targets="mean"),),
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SITE("pyramid", "lateral", n_classes, image_shape=(3, size, size)).train()
    objective, (optimiser, *_) = make_objective(model, data, config), make_optimisers(model, config)
    objective.run = torch.compile(objective.run) if compiled else objective.run
    like = next(model.parameters())

    def step() -> None:
        optimiser.zero_grad()
        whole = make_batch(data, config, objective.views, 0, like, Share())
        features = []
        for part in whole.parts(parts):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
                found = objective(part)
            (found.losses["loss"] / parts).backward()
            features.append(found.features)
        optimiser.step()
        objective.learn(whole, torch.cat(features))

    return step


VARIANTS: dict[str, dict[str, Any]] = {
    "32×32, 10 classes, batches of 64": {},
    "bfloat16": {"half": True},
    "in 4 accumulated parts": {"parts": 4},
    "torch.compile": {"compiled": True},
    "batches of 128": {"batch": 128},
    "64×64": {"size": 64},
    "100 classes": {"n_classes": 100},
}


def measure_steps(args: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of processor time for a step: the best of some, variants taking turns."""
    torch.set_num_threads(1)
    steps = {name: make_step(**options) for name, options in VARIANTS.items()}
    best = dict.fromkeys(steps, float("inf"))
    for step in steps.values():
        step()
    for _ in range(args.rounds):
        for name, step in steps.items():
            start = time.process_time()
            step()
            best[name] = min(best[name], 1000 * (time.process_time() - start))
    return {name: round(value, 1) for name, value in best.items()}


# Several processes


def measure_ranks(args: argparse.Namespace) -> dict[str, Any]:
    """Seconds of an epoch of the embedded digits in one and in two processes on this machine."""
    found = {}
    for ranks in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
            subprocess.run(
                [sys.executable, *command, __file__, "one-epoch", "--folder", folder],
                check=True,
                env=one_thread(),
            )
            found[f"{ranks} processes"] = json.loads((Path(folder) / "seconds.json").read_text())
    return found


def one_epoch(args: argparse.Namespace) -> None:
    """What each of the processes does; the second epoch is timed."""
    clock = Clock()
    data = load_dataset("mnist_sample")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SITE("identity", "lateral", 10, image_shape=(1, 28, 28))
    config = TrainingConfig(
        epochs=2,
        batch_size=128,
        terms=(TransformationTerm(targets="mean"),),
        precision="32",
        n_validation=0,
        checkpoint_seconds=1e9,
    )
    fit(
        model,
        data,
        config,
        validation=data[:10],
        folder=Path(args.folder) / "run",
        callbacks=[clock],
    )
    if os.environ.get("RANK", "0") == "0":
        Path(args.folder, "seconds.json").write_text(json.dumps(round(clock.times[1] - clock.times[0], 2)))


class Clock(Callback):
    """Notes when epochs end."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def epoch_done(self, run: Run) -> None:
        """One more."""
        self.times.append(time.perf_counter())


def one_thread() -> dict[str, str]:
    """The environment of a child that keeps to one core."""
    return dict(os.environ) | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


PARTS = {"steps": measure_steps, "ranks": measure_ranks}


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.what == ["one-epoch"]:
        one_epoch(args)
        return
    start = time.monotonic()
    values = dict(Result.load(args.out).values) if args.out and args.out.exists() else {}
    for what in args.what:
        values[what] = PARTS[what](args)
        Console().print({what: values[what]})
    if args.out:
        Result("scaling", values, {"rounds": args.rounds}, 0, time.monotonic() - start).save(args.out)


if __name__ == "__main__":
    main()
