"""`torchsite compare`: one table, explanation methods × metrics, for a saved model."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from torchsite.cli.inputs import names, open_data, open_model
from torchsite.cli.terminal import (
    AsJson,
    DataName,
    Limit,
    ModelName,
    Seed,
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
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for comparison.json, .md, .csv and .png; runs resume there.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare explanation methods on a model; every score beside its floor.

    Examples:

    torchsite compare mnist --methods self_explanation,grad_cam --metrics self_consistency --limit 200

    torchsite compare runs/birds/model --data photos/birds --out runs/birds/comparison
    """
    from torchsite.evaluation.compare import compare as run
    from torchsite.report.comparison import save_report, to_rich

    loaded = open_model(model)
    with watching("comparing") as watch:
        comparison = run(
            loaded,
            data=open_data(data, split, loaded),
            methods=names(methods) or None,
            metrics=names(metrics) or None,
            family=loaded.config.family,
            seed=seed,
            limit=limit,
            out=None if out is None else out / "comparison.json",
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
