"""`torchsite compare`: one table, METHODS × METRICS, for a saved model."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from torchsite.data import load_dataset
from torchsite.experiments.comparison import Comparison, Watch
from torchsite.experiments.comparison import compare as run
from torchsite.model import load
from torchsite.report.comparison import save_report, to_rich
from torchsite.transforms import TransformFamily


def compare(
    model: Annotated[str, typer.Argument(help="A shipped model's name, a folder, or a hub id.")],
    data: Annotated[str, typer.Option(help="A data set's name or a folder.")] = "mnist_sample",
    split: Annotated[str, typer.Option(help="Which part of the data.")] = "test",
    methods: Annotated[str, typer.Option(help="Names separated by commas; all if left out.")] = "",
    metrics: Annotated[str, typer.Option(help="Names separated by commas; all that apply if left out.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first pictures.")] = None,
    n_transforms: Annotated[int, typer.Option(min=1, help="Transforms per picture.")] = 4,
    max_rotation: Annotated[float, typer.Option(help="Degrees, either way.")] = 90.0,
    max_shift: Annotated[float, typer.Option(help="Share of the shorter side.")] = 0.25,
    judge: Annotated[str, typer.Option(help="A model that names prototypes (prototype_recognition).")] = "",
    batch_size: Annotated[int, typer.Option(min=2, help="Pictures at a time.")] = 64,
    seed: Annotated[int, typer.Option(help="Of transforms and intervals.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for comparison.json, .md, .csv and .png; runs resume there.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Continue an interrupted run.")] = True,
) -> None:
    """Measure what explains a model, method by method, each figure beside its floor."""
    console = Console()
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as progress:
        comparison = run(
            load(model),
            data=load_dataset(data, split=split),
            methods=_names(methods),
            metrics=_names(metrics),
            family=TransformFamily(max_rotation=max_rotation, max_shift=max_shift),
            n_transforms=n_transforms,
            seed=seed,
            limit=limit,
            batch_size=batch_size,
            metric_options={"prototype_recognition": {"judge": load(judge)}} if judge else None,
            out=None if out is None else out / "comparison.json",
            resume=resume,
            watch=_watch(progress),
        )
    _show(console, comparison, out)


def _watch(progress: Progress) -> Watch:
    task = progress.add_task("comparing", total=None)
    return lambda label, done, total: progress.update(task, description=label, completed=done, total=total)


def _show(console: Console, comparison: Comparison, out: Path | None) -> None:
    console.print(to_rich(comparison))
    if out is not None:
        save_report(comparison, out)
        console.print(f"written to {out}")


def _names(text: str) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] or None
