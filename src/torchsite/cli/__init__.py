"""The command line: `torchsite train | explain | evaluate | compare | reproduce | data | models | demo`."""

import sys
from typing import NoReturn

import typer

from torchsite.cli import compare, demo, explain, inspect, measure, train
from torchsite.cli.terminal import terminal
from torchsite.errors import TorchsiteError

app = typer.Typer(
    name="torchsite",
    help="Image classifiers that explain themselves, with explanations that move with the picture.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command()(demo.demo)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(train.train)
app.command()(explain.explain)
app.command()(measure.evaluate)
app.command()(compare.compare)
app.command()(measure.reproduce)
app.command()(inspect.data)
app.command()(inspect.models)


def main() -> NoReturn:
    """Run a command; errors raised on purpose end with one clear line and exit code 1."""
    try:
        app()
    except TorchsiteError as error:
        terminal(stderr=True).print(f"error: {error}", style="bold red")
        sys.exit(1)
    sys.exit(0)
