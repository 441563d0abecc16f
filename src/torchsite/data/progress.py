"""Progress bars for people at a terminal, and silence for everything else."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
from rich.progress import TimeRemainingColumn as Remaining

from torchsite.terminal import terminal

Advance = Callable[[int], None]


@contextmanager
def progress_bar(title: str, total: int | None, *, enabled: bool, bytes_: bool = False) -> Iterator[Advance]:
    """A bar on the standard error stream; the yielded function moves it by a number of steps or bytes."""
    if not (enabled and sys.stderr.isatty()):
        yield lambda _: None
        return
    amount: ProgressColumn = DownloadColumn() if bytes_ else MofNCompleteColumn()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), amount, Remaining())
    with Progress(*columns, console=terminal(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda steps: bar.advance(task, steps)
