"""The command line: `torchsite train`, `explain`, `evaluate`, `report`, `compare`, `reproduce`, `serve` …

Exit codes: 0 when all went well, 1 for an error with a message, 2 for a command line
that cannot be parsed, 130 when interrupted, 143 on SIGTERM.
A training that is interrupted writes a checkpoint first.
"""

import io
import sys
from typing import NoReturn

import typer

from torchsite.cli import (
    audit,
    compare,
    demo,
    explain,
    export,
    gallery,
    inspect,
    measure,
    page,
    reproduce,
    serve,
    train,
)
from torchsite.cli.terminal import terminal
from torchsite.errors import StoppedError, TorchsiteError

app = typer.Typer(
    name="torchsite",
    help="Image classifiers that explain themselves, with explanations that move with the picture.",
    epilog="Exit codes: 0 all went well; 1 an error, with the reason; 2 the command line cannot be "
    "parsed; 130 interrupted; 143 stopped by SIGTERM. "
    "A training then leaves a checkpoint to resume from.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
FREE = {"allow_extra_args": True, "ignore_unknown_options": True}  # fields of the recipe, as options
app.command()(demo.demo)
app.command(context_settings=FREE)(train.train)
for command in (
    *(explain.explain, measure.evaluate, measure.report, compare.compare, audit.audit),
    *(reproduce.reproduce, export.export, gallery.gallery, serve.serve, page.page),
    *(inspect.data, inspect.models),
):
    app.command()(command)


def main() -> NoReturn:
    """Run a command; errors raised on purpose, and those of files, end with a clear line and exit code 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # no name ends a command, whatever the locale
    try:
        app()
    except StoppedError as error:
        terminal(stderr=True).print(str(error))
        sys.exit(128 + error.signal)
    except (TorchsiteError, OSError) as error:
        terminal(stderr=True).print(f"error: {error}", style="bold red")
        sys.exit(1)
    sys.exit(0)
