"""Step times in float32, in bfloat16 and as `precision: auto` chooses, on this processor and as on AVX2.

    python benchmarks/precision.py [--rounds 5] [--threads 1] [--batch-size 32] [--recipes mnist cifar10]
                                   [--train 20000] [--out results/precision.json]

With --train, the mnist recipe also learns so many digits once, in either precision, and is tested on all.
Each instruction set is measured in a process of its own: libraries look at it once, when they are loaded.
A row is the best of some whole training steps, Muon included, on random pictures of the recipe's shape.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from torchsite.data import Dataset, load_dataset
from torchsite.objective import Share
from torchsite.randomness import make_rng
from torchsite.results import Result
from torchsite.training import fit
from torchsite.training.batches import make_batch
from torchsite.training.fit import make_objective
from torchsite.training.optimisers import make_optimisers
from torchsite.training.precision import Precision, choose_precision
from torchsite.training.recipes import build_model, load_recipe, override

SHAPES = {"mnist": (1, 28, 28), "cifar10": (3, 32, 32)}
SETTINGS: dict[str, dict[str, str]] = {
    "this processor": {},
    "AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
}


def measure(name: str, rounds: int, batch_size: int) -> dict[str, Any]:
    """Seconds of a step of one recipe in both precisions, and which of them `auto` takes."""
    recipe = override(load_recipe(name), {"batch_size": batch_size})
    n = 2 * recipe.training.batch_size
    images = torch.randint(0, 256, (n, *SHAPES[name]), dtype=torch.uint8, generator=make_rng(0))
    data = Dataset(images, torch.arange(n) % 10, tuple(str(i) for i in range(10)), name)
    model = build_model(recipe.model, data, recipe.training).train()
    objective, optimisers = (
        make_objective(model, data, recipe.training),
        make_optimisers(model, recipe.training),
    )
    like, device = next(model.parameters()), torch.device("cpu")

    def step(precision: Precision) -> float:
        start = time.perf_counter()
        batch = make_batch(data, recipe.training, objective.views, 0, like, Share())
        with precision.autocast(device):
            found = objective(batch)
        found.losses["loss"].backward()
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad()
        objective.learn(batch, found.features)
        return time.perf_counter() - start

    both = {"float32": Precision("32", ""), "bfloat16": Precision("bf16", "")}
    best = {key: min(step(one) for _ in range(rounds)) for key, one in both.items()}
    auto = choose_precision("auto", device)
    taken = best["bfloat16" if auto.chosen == "bf16" else "float32"]
    return best | {"auto": taken, "auto takes": auto.chosen, "because": auto.why}


def learn(n: int) -> dict[str, Any]:
    """What a short training of recipe mnist reaches in either precision: one epoch of `n` digits."""
    train, test = load_dataset("mnist", "train")[:n], load_dataset("mnist", "test")
    found: dict[str, Any] = {"pictures": n}
    for precision in ("32", "bf16"):
        changes = {"epochs": 1, "precision": precision, "n_validation": len(test)}
        recipe = override(load_recipe("mnist"), changes)
        model = build_model(recipe.model, train, recipe.training)
        with tempfile.TemporaryDirectory(prefix="torchsite-") as folder:
            run = fit(model, train, recipe.training, validation=test, folder=Path(folder) / "run")
        found[precision] = {"seconds": run.seconds, **run.measures}
    return found


def main() -> None:
    """Measure every recipe under every setting, print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--recipes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--train", type=int, default=0, metavar="DIGITS")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--here", choices=SHAPES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.here:
        print(json.dumps(measure(args.here, args.rounds, args.batch_size)))
        return
    started = time.monotonic()
    values: dict[str, Any] = {}
    for setting, environment in SETTINGS.items():
        values[setting] = {name: apart(name, args, environment) for name in args.recipes}
    learnt = learn(args.train) if args.train else None
    table = Table("as on", "recipe", "float32, s", "bfloat16, s", "auto, s", "auto takes")
    for setting, rows in values.items():
        for name, row in rows.items():
            times = (f"{row[key]:.3f}" for key in ("float32", "bfloat16", "auto"))
            table.add_row(setting, name, *times, row["auto takes"])
    Console(width=110).print(table)
    if learnt:
        Console().print(learnt)
    if args.out:
        values |= {"learnt": learnt} if learnt else {}
        config = {"rounds": args.rounds, "threads": args.threads, "batch_size": args.batch_size}
        Result("precision", values, config, 0, time.monotonic() - started).save(args.out)


def apart(name: str, args: argparse.Namespace, environment: dict[str, str]) -> dict[str, Any]:
    """One recipe in a process with these settings."""
    options = {"here": name, "rounds": args.rounds, "batch-size": args.batch_size, "threads": args.threads}
    words = [word for option, value in options.items() for word in (f"--{option}", str(value))]
    done = subprocess.run(
        [sys.executable, __file__, *words],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    main()
