"""The cost of training and of explaining, in ratios measured side by side.

Each row alternates two or more variants in short rounds and keeps the best time of each, as `timeit` does:
other work on the machine can only slow a round down.

    python benchmarks/training.py [--seconds 1.0] [--rounds 4] [--batch-size 64] [--threads N] [--clock cpu]
                                  [--only classes …] [--out results/training_costs.json]

With one thread, `--clock cpu` counts the seconds that the processor worked, on a machine that has other work.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

sys.path.append(str(Path(__file__).parents[1]))  # where the experiments are

from experiments.peers import BCos, PrototypeParts
from torchsite.data import Dataset, to_float
from torchsite.model import SITE, BlackBox
from torchsite.objective import Share, TransformationTerm
from torchsite.randomness import make_rng
from torchsite.results import Result
from torchsite.training import TrainingConfig
from torchsite.training.batches import make_batch
from torchsite.training.fit import make_objective
from torchsite.training.optimisers import make_optimisers
from torchsite.training.recipes import build_model, load_recipe, override

Work = Callable[[], object]
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
SHAPES = {"MNIST": (1, 28, 28), "CIFAR-10": (3, 32, 32)}
RECIPES = {"MNIST": "mnist", "CIFAR-10": "cifar10"}


@dataclass(frozen=True)
class Row:
    """One comparison, its ratio and what was aimed at."""

    name: str
    times: str
    ratio: float
    target: str
    met: bool | None


def best_times(variants: Mapping[str, Work], args: argparse.Namespace) -> dict[str, float]:
    """Seconds per call of each variant: the best of all calls, rounds taking turns."""
    clock = CLOCKS[args.clock]
    best = dict.fromkeys(variants, float("inf"))
    for work in variants.values():
        work()
    for _ in range(args.rounds):
        for name, work in variants.items():
            end = clock() + args.seconds
            while clock() < end:
                start = clock()
                work()
                best[name] = min(best[name], clock() - start)
    return best


def noise(data: str, n: int, n_classes: int = 10) -> Dataset:
    """Random pictures of a data set's shape; timings do not depend on what they show."""
    rng = make_rng(0, "noise")
    images = torch.randint(0, 256, (n, *SHAPES[data]), dtype=torch.uint8, generator=rng)
    return Dataset(images, torch.arange(n) % n_classes, tuple(str(i) for i in range(n_classes)), data)


def make_site(data: str, n_classes: int = 10) -> SITE:
    """SITE as the recipe of the data has it."""
    model = make(data, n_classes, {})
    assert isinstance(model, SITE)
    return model


def make(data: str, n_classes: int, changes: Mapping[str, object]) -> SITE | BlackBox:
    """The model of a recipe, untrained."""
    recipe = override(load_recipe(RECIPES[data]), changes)
    return build_model(recipe.model, noise(data, 10 * n_classes, n_classes), recipe.training)


def one_step(args: argparse.Namespace, **term: Any) -> TrainingConfig:
    """A training in which pictures are seen once, posed, with a transformation term of these options."""
    return TrainingConfig(batch_size=args.batch_size, terms=(TransformationTerm(**term),))


def training_step(model: SITE | BlackBox, data: Dataset, config: TrainingConfig, half: bool = False) -> Work:
    """One whole step: look up, transform, forward, objective, backward, optimiser."""
    objective, (optimiser, *_) = make_objective(model, data, config), make_optimisers(model, config)
    like = next(model.parameters())
    model.train()

    def step() -> None:
        batch = make_batch(data, config, objective.views, 0, like, Share())
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            found = objective(batch)
        optimiser.zero_grad()
        found.losses["loss"].backward()
        optimiser.step()
        objective.learn(batch, found.features)

    return step


def compare_targets(args: argparse.Namespace) -> Row:
    """The closed form against the authors' scheme: classes × batch more passes through F1."""
    data = noise("CIFAR-10", 2000)
    closed = one_step(args, targets="mean")
    theirs = one_step(args, targets="sampled")
    steps = {
        name: training_step(make_site("CIFAR-10"), data, config)
        for name, config in (("mean", closed), ("sampled", theirs))
    }
    times = best_times(steps, args)
    ratio = times["sampled"] / times["mean"]
    return Row(
        "step with sampled targets / closed form, CIFAR-10", milliseconds(times), ratio, "≥ 5", ratio >= 5
    )


def compare_explanation(data: str, args: argparse.Namespace) -> Row:
    """All heatmaps of all classes against a black box that only answers."""
    images = to_float(noise(data, args.batch_size).images)
    site = make_site(data).eval()
    black_box = make(data, 10, {"model.kind": "black_box"}).eval()

    def answer() -> object:
        with torch.no_grad():
            return black_box(images)

    times = best_times({"explain": lambda: site.explain(images).heatmaps(), "black box": answer}, args)
    ratio = times["explain"] / times["black box"]
    return Row(
        f"explanation, all classes / black box, {data}", milliseconds(times), ratio, "≤ 1.3", ratio <= 1.3
    )


def compare_classes(args: argparse.Namespace) -> Row:
    """A step for 101 classes against one for ten."""
    steps = {
        f"c = {n}": training_step(
            make_site("CIFAR-10", n), noise("CIFAR-10", 2020, n), one_step(args, targets="mean")
        )
        for n in (10, 101)
    }
    times = best_times(steps, args)
    return Row("step, 101 classes / 10", milliseconds(times), times["c = 101"] / times["c = 10"], "", None)


def compare_own_explanations(args: argparse.Namespace) -> list[Row]:
    """Maps of one class for every picture against the same model's forward pass, for each kind of model."""
    images = to_float(noise("CIFAR-10", args.batch_size).images)
    classes = torch.arange(args.batch_size) % 10
    shape = {"image_shape": SHAPES["CIFAR-10"]}
    models: dict[str, SITE | BCos | PrototypeParts] = {
        "SITE": make_site("CIFAR-10"),
        "CAM": SITE("pyramid", "constant", 10, **shape),
        "BagNet-like": SITE("two_scales_parts", "constant", 10, pretrained=False, **shape),
        "B-cos": BCos("pyramid", 10, **shape),
        "ProtoPNet-like": PrototypeParts("pyramid", 10, **shape),
    }
    rows = []
    for name, model in models.items():
        model.eval()

        def answer(model: nn.Module = model) -> object:
            with torch.no_grad():
                return model(images)

        def explain(model: SITE | BCos | PrototypeParts = model) -> object:
            return model.explain(images).heatmaps(size=(32, 32), classes=classes)

        times = best_times({"explain": explain, "forward": answer}, args)
        ratio = times["explain"] / times["forward"]
        rows.append(Row(f"explanation / own forward pass, {name}", milliseconds(times), ratio, "", None))
    return rows


def compare_precision(data: str, args: argparse.Namespace) -> Row:
    """Single precision against bfloat16 where autocast uses it."""
    steps = {
        name: training_step(make_site(data), noise(data, 2000), one_step(args, targets="mean"), half)
        for name, half in (("float32", False), ("bf16", True))
    }
    times = best_times(steps, args)
    return Row(
        f"step, float32 / bf16, {data}", milliseconds(times), times["float32"] / times["bf16"], "", None
    )


def compare_arithmetic(data: str, args: argparse.Namespace) -> Row:
    """Multiply-accumulates per second of a training step against the best plain convolution."""
    step = training_step(make_site(data), noise(data, 2000), one_step(args, targets="mean"))
    convolutions = {
        f"{c} channels, {side}×{side}": convolution(c, side) for c, side in ((64, 32), (128, 16), (256, 16))
    }
    counts = {name: multiply_accumulates(work) for name, work in {"step": step, **convolutions}.items()}
    times = best_times({"step": step, **convolutions}, args)
    rates = {name: counts[name] / times[name] for name in counts}
    plain = max(rates[name] for name in convolutions)
    fraction = rates["step"] / plain
    told = f"step {rates['step'] / 1e9:.0f}, convolution {plain / 1e9:.0f} GMAC/s"
    return Row(f"arithmetic of a step / plain convolution, {data}", told, fraction, "≥ 0.5", fraction >= 0.5)


def convolution(channels: int, side: int) -> Work:
    """Forward and backward of one 3×3 convolution in the fastest layout."""
    layer = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
    layer = layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    maps = torch.rand(32, channels, side, side).contiguous(memory_format=torch.channels_last).requires_grad_()
    return lambda: layer(maps).sum().backward()


def multiply_accumulates(work: Work) -> float:
    """Of one call, forward and backward: convolutions and matrix products."""
    with FlopCounterMode(display=False) as counter:
        work()
    return float(counter.get_total_flops()) / 2


def milliseconds(times: Mapping[str, float]) -> str:
    """Times for people."""
    return ", ".join(f"{name} {1000 * value:.1f} ms" for name, value in times.items())


def main() -> None:
    """Measure everything in one run and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="for each variant in each round")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--only", nargs="*", default=[], help="targets, explanation, own, classes …")
    parser.add_argument("--out", type=Path, help="keep the rows as a result file")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    parts: Mapping[str, Callable[[], list[Row]]] = {
        "targets": lambda: [compare_targets(args)],
        "explanation": lambda: [compare_explanation(data, args) for data in SHAPES],
        "own": lambda: compare_own_explanations(args),
        "classes": lambda: [compare_classes(args)],
        "precision": lambda: [compare_precision(data, args) for data in SHAPES],
        "arithmetic": lambda: [compare_arithmetic(data, args) for data in SHAPES],
    }
    rows = [row for name, part in parts.items() if name in args.only or not args.only for row in part()]
    table = Table(
        title=f"batches of {args.batch_size}, {args.threads} threads, {args.clock} clock, best of all calls"
    )
    for column in ("ratio of", "measured", "ratio", "target", ""):
        table.add_column(column, justify="right" if column == "ratio" else "left")
    for row in rows:
        verdict = "" if row.met is None else "met" if row.met else "missed"
        table.add_row(row.name, row.times, f"{row.ratio:.2f}", row.target, verdict)
    Console(width=140).print(table)
    if args.out:
        config = {key: value for key, value in vars(args).items() if key != "out"}
        Result("training_costs", {"rows": [asdict(row) for row in rows]}, config, 0, 0.0).save(args.out)


if __name__ == "__main__":
    main()
