"""`torchsite reproduce`: the tables of the paper and our studies, in a checkout."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from torchsite.cli.inputs import names
from torchsite.cli.terminal import AsJson
from torchsite.errors import NotApplicableError


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
    of the checkout in the current folder, and the figures and pages of docs/ are drawn again.

    Examples:

    torchsite reproduce

    torchsite reproduce mnist --out runs

    torchsite reproduce mnist_pointing --publish

    torchsite reproduce all --publish

    torchsite reproduce leaderboard --add mine.py --only mine,site
    """
    command = experiments_command()
    if not name:
        command.list_experiments(as_json)
        return
    rows = {"only": names(only), "add": add} if only or add is not None else {}
    command.run_experiments(name, out, rows, quick=quick, publishing=publish, as_json=as_json)


def experiments_command() -> ModuleType:
    """`experiments.command` of the checkout that this package is imported from; an error elsewhere.

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
    found = import_module("experiments.command")
    if Path(str(found.__file__)).parent != package:
        raise NotApplicableError(
            f"`experiments` is {found.__file__} here, expected {package}: another package has that name"
        )
    return found
