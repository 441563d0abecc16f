"""How fast a model answers, with all its heatmaps: PyTorch, ONNX Runtime and its int8 form.

    python benchmarks/export.py [--model mnist] [--data mnist_sample] [--rounds 20] [--threads 1] [--out FILE]

Rounds of the three take turns; the best time of each counts, as other work can only slow a round down. With
one thread it is processor time, which other work does not lengthen. `results/export.json` is such a run.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from torchsite.cli.export import N_CALIBRATION, judge
from torchsite.data import load_dataset, to_float
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import SITE, load
from torchsite.model.export import OnnxModel, export_onnx, quantise
from torchsite.results import Result

BATCHES = (1, 32)
Work = Callable[[torch.Tensor], object]


def best_milliseconds(
    variants: dict[str, Work], images: torch.Tensor, args: argparse.Namespace
) -> dict[str, float]:
    """The best time of each variant."""
    clock = time.process_time if args.threads == 1 else time.perf_counter
    best = dict.fromkeys(variants, float("inf"))
    for work in variants.values():
        work(images)
    for _ in range(args.rounds):
        for name, work in variants.items():
            start = clock()
            work(images)
            best[name] = min(best[name], 1000 * (clock() - start))
    return best


def measure(args: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Export, quantise, judge, time."""
    model, test = load(args.model), load_dataset(args.data, "test")[: args.limit]
    assert isinstance(model, SITE)
    exported = export_onnx(model, folder / "model.onnx")
    calibration = to_float(load_dataset(args.data, "train").images[:N_CALIBRATION])
    small = quantise(exported.path, folder / "int8.onnx", calibration)
    variants: dict[str, Work] = {
        "PyTorch": lambda images: model.explain(images).heatmaps(),
        "ONNX Runtime": OnnxModel(exported.path, args.threads),
        "ONNX Runtime, int8": OnnxModel(small, args.threads),
    }
    images = to_float(test.images[: max(BATCHES)])
    return {
        "milliseconds": {str(n): best_milliseconds(variants, images[:n], args) for n in BATCHES},
        "largest difference from PyTorch": exported.max_difference,
        "bytes": {"float32": exported.path.stat().st_size, "int8": small.stat().st_size},
        "quality": judge(exported.path, small, test),
    }


def main() -> None:
    """Measure and print; write a result file if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="mnist")
    parser.add_argument("--data", default="mnist_sample")
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        values = measure(args, Path(folder))
    times = values["milliseconds"]
    assert isinstance(times, dict)
    table = Table(
        title=f"{args.model}: logits and all heatmaps, {args.threads} threads, best of {args.rounds}"
    )
    for column in ("", *(f"{n} pictures, ms" for n in BATCHES)):
        table.add_column(column, justify="right")
    for name in times["1"]:
        table.add_row(name, *(f"{times[str(n)][name]:.2f}" for n in BATCHES))
    console = Console()
    console.print(table, {key: values[key] for key in values if key != "milliseconds"})
    if args.out:
        settings = {key: str(value) for key, value in vars(args).items() if key != "out"}
        weights = {"weights": {args.model: weights_of(load(args.model))}}
        Result("export", values, settings | weights, 0, time.monotonic() - start).save(args.out)


if __name__ == "__main__":
    main()
