"""Output of the commands: text or JSON on stdout, progress bars on stderr.

Lines are never broken (paths stay whole) and text is never markup. Results go to the standard output; bars go
to the standard error stream, and only if that is a terminal, so that pipes and logs stay clean.

Commands import the library only when they run: help and completion are quick.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.segment import Segment

from torchsite.files import visible

if TYPE_CHECKING:
    from torchsite.evaluation.compare import Watch

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of words.")]
ModelName = Annotated[str, typer.Argument(help="A shipped model's name, a folder, or a hub id.")]
DataName = Annotated[str, typer.Option("--data", help="A data set's name or a folder.")]
Split = Annotated[str, typer.Option(help="Which part of the data.")]
Limit = Annotated[int | None, typer.Option(min=2, help="Only the first pictures.")]
Seed = Annotated[int, typer.Option(help="Of the pictures drawn, their poses, and the intervals.")]
Samples = Annotated[
    list[str] | None,
    typer.Option("--data", help="Data set or folder whose test pictures are the samples; may be repeated."),
]
Audits = Annotated[
    list[Path] | None,
    typer.Option("--audit", help="JSON of `torchsite audit`: its groups are shown; may be repeated."),
]


class Terminal(Console):
    """A console on which all text is `visible`, also inside tables and bars; rich's own colours remain."""

    def render(self, *given: Any, **options: Any) -> Iterator[Segment]:
        """The pieces of what is printed."""
        for text, style, control in super().render(*given, **options):
            yield Segment(text if control else visible(text), style, control)


def terminal(*, stderr: bool = False) -> Terminal:
    """A console for results: lines are not broken; square brackets and colons in names stay as they are."""
    return Terminal(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


def say_json(values: Any) -> None:
    """One line of JSON on the standard output."""
    terminal().print(json.dumps(values))


def say_figures(figures: Mapping[str, str], console: Terminal | None = None) -> None:
    """Names to the right, figures below each other."""
    for name, value in figures.items():
        (console or terminal()).print(f"{name:>36}  {value}")


@contextmanager
def watching(title: str, *, enabled: bool = True) -> Iterator["Watch"]:
    """A bar that goes away when the work is done; the yielded function takes `(label, done, total)`."""
    if not (enabled and sys.stderr.isatty()):
        yield lambda label, done, total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda label, done, total: progress.update(task, description=label, completed=done, total=total)
