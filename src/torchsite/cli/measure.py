"""`torchsite evaluate` and `torchsite reproduce`: figures of a model, tables and figures of the paper."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from torchsite.cli.terminal import terminal
from torchsite.data import load_dataset
from torchsite.errors import ConfigError, did_you_mean
from torchsite.experiments.evaluation import evaluate as run_evaluation
from torchsite.experiments.registry import EXPERIMENTS
from torchsite.model import SITE, BlackBox, load
from torchsite.report.results import headline


def evaluate(
    model: Annotated[str, typer.Argument(help="A shipped model's name, a folder, or a hub id.")],
    data: Annotated[str, typer.Option(help="A data set's name or a folder.")] = "mnist_sample",
    split: Annotated[str, typer.Option(help="Which part of the data.")] = "test",
    judge: Annotated[str, typer.Option(help="A black box that is asked what the prototypes show.")] = "",
    limit: Annotated[int | None, typer.Option(min=2, help="Only the first pictures.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write the result file.")] = None,
) -> None:
    """Measure a model: accuracy, self-consistency with its floor, completeness.

    torchsite evaluate mnist --data mnist --out results/mnist.json
    """
    console = terminal()
    loaded, asked = load(model), load(judge) if judge else None
    assert isinstance(loaded, SITE | BlackBox)
    assert asked is None or isinstance(asked, BlackBox)
    result = run_evaluation(loaded, load_dataset(data, split), judge=asked, limit=limit)
    for name, value in headline(result).items():
        console.print(f"{name:>36}  {value}")
    if out:
        console.print(f"written to {result.save(out)}")


def reproduce(
    name: Annotated[str, typer.Argument(help="The experiment; without a name, all are listed.")] = "",
    out: Annotated[Path, typer.Option(help="Folder for runs and results; work continues there.")] = Path(
        "runs"
    ),
    quick: Annotated[bool, typer.Option(help="A slice, in under a minute.")] = False,
) -> None:
    """Run one experiment of the paper; interrupted ones continue.

    torchsite reproduce mnist --out runs
    """
    console = terminal()
    if not name:
        table = Table("experiment", "shows")
        for key, experiment in EXPERIMENTS.items():
            table.add_row(key, experiment.shows)
        console.print(table)
        return
    if name not in EXPERIMENTS:
        raise ConfigError(f"no experiment {name!r}: {did_you_mean(name, EXPERIMENTS)}")
    place = out / (f"{name}-quick" if quick else name)
    result = EXPERIMENTS[name].run(place, quick=quick, progress=console.is_terminal)
    for key, value in headline(result).items():
        console.print(f"{key:>36}  {value}")
    console.print(f"the result file is in {place}")
