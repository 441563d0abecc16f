"""A progress bar on the terminal, for those who ask for one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from torchsite.training.callback import Callback

if TYPE_CHECKING:
    from torchsite.training.loop import Run

SHOWN = ("loss", "accuracy")


class ProgressBar(Callback):
    """Steps of the epoch, the loss, and how long the run will take."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns)
        self.task = self.bar.add_task("training", total=None)

    def started(self, run: "Run") -> None:
        """Show the bar where the run stands."""
        self.bar.update(self.task, total=run.n_steps, completed=run.position)
        self.bar.start()

    def step_done(self, run: "Run", losses: Mapping[str, Tensor]) -> None:
        """One step more."""
        said = ", ".join(f"{name} {float(losses[name]):.3f}" for name in SHOWN if name in losses)
        epoch = f"epoch {(run.steps_done - 1) // run.steps_per_epoch + 1}/{run.config.epochs}"
        self.bar.update(self.task, completed=min(run.position, run.n_steps), description=f"{epoch}: {said}")

    def ended(self, run: "Run") -> None:
        """Leave the last line standing."""
        self.bar.stop()
