"""`torchsite evaluate`, `report`: the scores of a model, and a report about it."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from torchsite.cli.inputs import names, open_data, open_model, training_data
from torchsite.cli.terminal import (
    AsJson,
    DataName,
    Limit,
    ModelName,
    Seed,
    Split,
    say_figures,
    say_json,
    terminal,
    watching,
)


def evaluate(
    model: ModelName,
    data: DataName = "mnist_sample",
    split: Split = "test",
    limit: Limit = None,
    out: Annotated[Path | None, typer.Option(help="Where to write the result file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a model: accuracy, self-consistency with its floor, completeness.

    Examples:

    torchsite evaluate mnist --data mnist --out results/mnist.json

    torchsite evaluate runs/birds/model --data photos/birds --limit 500 --json
    """
    from torchsite.evaluation.evaluate import evaluate as run
    from torchsite.report.format import headline

    loaded = open_model(model)
    with watching("measuring") as watch:
        result = run(loaded, open_data(data, split, loaded), limit=limit, watch=watch)
    say_json(asdict(result)) if as_json else say_figures(headline(result))
    if out:
        written = result.save(out)
        None if as_json else terminal().print(f"written to {written}")


def report(
    model: ModelName,
    data: Annotated[str, typer.Argument(help="A data set's name or a folder.")] = "mnist_sample",
    split: Split = "test",
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    methods: Annotated[
        str | None, typer.Option(help="Post-hoc methods to compare, separated by commas; '' for none.")
    ] = None,
    limit: Annotated[int, typer.Option(min=2, help="At most so many pictures, drawn at random.")] = 2000,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Write a report about a model: one HTML file that needs no network.

    Data, training curves, accuracy, confusion, calibration, self-consistency with its floor and over angles,
    post-hoc methods, example sheets, and the worst mistakes with their reasons.

    Examples:

    torchsite report mnist

    torchsite report runs/birds/model photos/birds --out birds.html
    """
    from torchsite.evaluation.examine import METHODS_SHOWN, examine
    from torchsite.evaluation.illustrate import illustrate
    from torchsite.evaluation.training_log import find_log
    from torchsite.report import write_report
    from torchsite.report.findings import findings

    loaded = open_model(model)
    examined = open_data(data, split, loaded)
    with watching("examining") as watch:
        result = examine(
            loaded,
            examined,
            training=training_data(model, data, loaded),
            log=find_log(model) if Path(model).is_dir() else None,
            methods=METHODS_SHOWN if methods is None else names(methods),
            limit=limit,
            seed=seed,
            watch=watch,
        )
        watch("drawing", 0, 1)
        path = write_report(result, illustrate(loaded, examined, result), out)
    if as_json:
        say_json({"report": str(path), "result": asdict(result)})
        return
    for sentence in findings(result):
        terminal().print(sentence)
    terminal().print(f"\nreport:   {path}")
