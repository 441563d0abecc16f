"""`torchsite reproduce`: the tables of the paper and our studies, in a checkout."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from torchsite.cli.inputs import names
from torchsite.cli.terminal import AsJson, say_figures, say_json, terminal
from torchsite.errors import ConfigError, NotApplicableError, TorchsiteError

ALL = "all"


def reproduce(
    name: Annotated[
        str, typer.Argument(help="The experiment, or `all`; without a name, all are listed.")
    ] = "",
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
    """Run one experiment of the paper, or all that are not done yet; interrupted ones continue.

    The result and its figures are written to runs/NAME. With --publish, the result is also copied to results/
    of the checkout that you stand in, and the figures and pages of docs/ are drawn again.

    Examples:

    torchsite reproduce

    torchsite reproduce mnist --out runs

    torchsite reproduce mnist_pointing --publish

    torchsite reproduce all --publish

    torchsite reproduce leaderboard --add mine.py --only mine,site
    """
    registry = part("registry")
    if not name:
        _list_experiments(registry.EXPERIMENTS, as_json)
        return
    if publish and quick:
        raise ConfigError("--publish is for whole runs: leave --quick away")
    if name == ALL and quick:
        raise ConfigError("`all` is for whole runs: leave --quick away, or name one experiment")
    chosen = [registry.find_experiment(name)] if name != ALL else _planned(registry.plan(out))
    checkout = part("publish").find_checkout(Path.cwd()) if publish else None
    rows = {"only": names(only), "add": add} if only or add is not None else {}
    failed = []
    for experiment in chosen:
        try:
            _one(experiment, out, rows, checkout, quick=quick, as_json=as_json)
        except TorchsiteError as error:
            if name != ALL:
                raise
            terminal(stderr=True).print(f"{experiment.name}: {error}")
            failed.append(experiment.name)
    if failed:
        raise NotApplicableError(f"{len(failed)} of {len(chosen)} could not be run: {', '.join(failed)}")


def _planned(plan: Sequence[tuple[Any, bool]]) -> list[Any]:
    """What is not done yet, after a table of what is and what the rest costs."""
    from rich.table import Table

    table = Table("experiment", "CPU minutes", "state")
    for experiment, done in plan:
        table.add_row(experiment.name, f"{experiment.minutes:g}", "done" if done else "to do")
    left = [experiment for experiment, done in plan if not done]
    terminal(stderr=True).print(table)
    minutes = sum(experiment.minutes for experiment in left)
    terminal(stderr=True).print(
        f"{len(left)} of {len(plan)} to do, about {minutes / 60:.0f} hours of one core; delete a result from "
        "the folder of its run to have it measured again"
    )
    return left


def _one(
    experiment: Any, out: Path, rows: Mapping[str, Any], checkout: Path | None, *, quick: bool, as_json: bool
) -> None:
    from torchsite.report.format import headline

    publishing = part("publish")
    place = out / (f"{experiment.name}-quick" if quick else experiment.name)
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
