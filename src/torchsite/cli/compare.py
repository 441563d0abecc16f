"""`torchsite compare`: one table, explanation methods × metrics, for a saved model."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from torchsite.cli.inputs import names, open_black_box, open_data, open_model
from torchsite.cli.terminal import (
    AsJson,
    DataName,
    Judge,
    Limit,
    ModelName,
    Split,
    say_json,
    terminal,
    watching,
)


def compare(
    model: ModelName,
    data: DataName = "mnist_sample",
    split: Split = "test",
    methods: Annotated[str, typer.Option(help="Names separated by commas; all if left out.")] = "",
    metrics: Annotated[str, typer.Option(help="Names separated by commas; all that apply if left out.")] = "",
    limit: Limit = None,
    n_transforms: Annotated[int, typer.Option(min=1, help="Transforms per picture.")] = 4,
    max_rotation: Annotated[
        float | None, typer.Option(min=0, max=180, help="Degrees, either way; the model's own unless told.")
    ] = None,
    max_shift: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of the shorter side; the model's own unless told."),
    ] = None,
    judge: Judge = "",
    batch_size: Annotated[int, typer.Option(min=2, help="Pictures at a time.")] = 64,
    seed: Annotated[int, typer.Option(help="Of transforms and intervals.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for comparison.json, .md, .csv and .png; runs resume there.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Continue an interrupted run.")] = True,
    as_json: AsJson = False,
) -> None:
    """Compare explanation methods on a model; every score stands beside its floor.

    Examples:

    torchsite compare mnist --methods self_explanation,grad_cam --metrics self_consistency --limit 200

    torchsite compare runs/birds/model --data photos/birds --out runs/birds/comparison
    """
    from torchsite.evaluation.compare import compare as run
    from torchsite.report.comparison import save_report, to_rich

    loaded = open_model(model)
    given: dict[str, Any] = {"max_rotation": max_rotation, "max_shift": max_shift}
    with watching("comparing") as watch:
        comparison = run(
            loaded,
            data=open_data(data, split, loaded),
            methods=names(methods) or None,
            metrics=names(metrics) or None,
            family=replace(
                loaded.config.family, **{name: value for name, value in given.items() if value is not None}
            ),
            n_transforms=n_transforms,
            seed=seed,
            limit=limit,
            batch_size=batch_size,
            metric_options={"prototype_recognition": {"judge": open_black_box(judge)}} if judge else None,
            out=None if out is None else out / "comparison.json",
            resume=resume,
            watch=watch,
        )
    if out is not None:
        save_report(comparison, out)
    if as_json:
        say_json(asdict(comparison.to_result()))
        return
    terminal().print(to_rich(comparison))
    if out is not None:
        terminal().print(f"written to {out}")
