"""`torchsite reproduce`: the tables of the paper and our studies, in a checkout."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from torchsite.cli.inputs import names
from torchsite.cli.terminal import AsJson, say_figures, say_json, terminal
from torchsite.errors import ConfigError, NotApplicableError


def reproduce(
    name: Annotated[str, typer.Argument(help="The experiment; without a name, all are listed.")] = "",
    out: Annotated[Path, typer.Option(help="Folder for runs and results; work continues there.")] = Path(
        "runs"
    ),
    quick: Annotated[bool, typer.Option(help="A slice, in under a minute.")] = False,
    publish: Annotated[
        bool,
        typer.Option("--publish", help="In a checkout: also write results/ and draw docs/ again from it."),
    ] = False,
    only: Annotated[
        str, typer.Option(help="The leaderboard's entries to train and measure, separated by commas.")
    ] = "",
    add: Annotated[
        Path | None, typer.Option(help="A file of your own whose ENTRIES stand on the leaderboard.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run one experiment of the paper; interrupted ones continue.

    The result and its figures are written to runs/NAME. With --publish, the result is also copied to results/
    of the checkout that you stand in, and the figures and pages of docs/ are drawn again.

    Examples:

    torchsite reproduce

    torchsite reproduce mnist --out runs

    torchsite reproduce mnist_pointing --publish

    torchsite reproduce leaderboard --add mine.py --only mine,site
    """
    registry = part("registry")
    if not name:
        _list_experiments(registry.EXPERIMENTS, as_json)
        return
    experiment = registry.find_experiment(name)
    if publish and quick:
        raise ConfigError("--publish is for whole runs: leave --quick away")

    from torchsite.report.format import headline

    publishing = part("publish")

    checkout = publishing.find_checkout(Path.cwd()) if publish else None
    place = out / (f"{name}-quick" if quick else name)
    rows = {"only": names(only), "add": add} if only or add is not None else {}
    result = experiment.run(place, quick=quick, progress=terminal(stderr=True).is_terminal, **rows)
    drawn = publishing.draw_figures(experiment, place)
    published = [] if checkout is None else publishing.publish(experiment, place, checkout)
    if as_json:
        say_json(asdict(result))
        return
    say_figures(headline(result))
    for path in drawn:
        terminal().print(f"figure: {path}")
    terminal().print(f"the result file is in {place}")
    for path in published:
        terminal().print(f"published: {path}")


def part(name: str) -> ModuleType:
    """A module of the experiments of the checkout that this package is imported from; an error elsewhere.

    Nothing is searched: the one place is beside the `src` that holds this very file.
    """
    root = Path(__file__).resolve().parents[3]
    package = root / "experiments"
    if not (root / "src" / "torchsite" / "cli").is_dir() or not (package / "__init__.py").is_file():
        raise NotApplicableError(
            "the experiments are not part of the installed package: clone the repository, "
            "and run `pip install --editable .` there"
        )
    if str(root) not in sys.path:
        sys.path.append(str(root))
    found = import_module(f"experiments.{name}")
    if Path(str(found.__file__)).parent != package:
        raise NotApplicableError(
            f"`experiments` is {found.__file__} here, expected {package}: another package has that name"
        )
    return found


def _list_experiments(experiments: Mapping[str, Any], as_json: bool) -> None:
    from rich.table import Table

    shows = {name: experiment.shows for name, experiment in experiments.items()}
    if as_json:
        say_json(shows)
        return
    table = Table("experiment", "shows")
    for row in shows.items():
        table.add_row(*row)
    terminal().print(table)
