"""The log of a run: `logs/metrics.csv`, and TensorBoard's files beside it where it is installed."""

import csv
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from torchsite.errors import TrainingError
from torchsite.training.watch import Watch

if TYPE_CHECKING:
    from torchsite.training.loop import Run

log = logging.getLogger(__name__)


class TrainingLog(Watch):
    """Writes the losses of every so many steps and the measures of every validation.

    A resumed run begins a new file; the parts before are kept as `metrics-1.csv`, `metrics-2.csv` …
    """

    def __init__(self, folder: Path, every: int) -> None:
        self.path, self.every = folder / "metrics.csv", every
        self.rows: list[dict[str, Any]] = []
        self.columns: list[str] = []
        self.board: Any = None

    def started(self, run: "Run") -> None:
        """Move the log so far aside."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            parts = len(list(self.path.parent.glob(f"{self.path.stem}-*{self.path.suffix}")))
            self.path.replace(self.path.with_stem(f"{self.path.stem}-{parts + 1}"))
        self.board = _tensorboard(self.path.parent)

    def step_done(self, run: "Run", losses: Mapping[str, Tensor]) -> None:
        """One row, if it is time."""
        if run.steps_done % self.every == 0:
            rate = run.learning_rate_factor * run.config.learning_rate
            self.write(run, {name: float(value) for name, value in losses.items()} | {"learning rate": rate})

    def validated(self, run: "Run", measures: Mapping[str, float], seconds: float) -> None:
        """One row."""
        self.write(run, {f"validation {name}": value for name, value in measures.items()})

    def ended(self, run: "Run") -> None:
        """Close TensorBoard's file."""
        if self.board is not None:
            self.board.close()

    def write(self, run: "Run", values: Mapping[str, float]) -> None:
        """Add a row; a name that is new adds a column, for which the file is written anew."""
        step = run.steps_done - 1
        self.rows.append({"epoch": step // run.steps_per_epoch, "step": step, **values})
        new = values.keys() - set(self.columns)
        self.columns = sorted({*self.columns, *values, "epoch", "step"}) if new else self.columns
        try:
            self._write_rows(anew=bool(new))
        except OSError as error:
            raise TrainingError(
                f"the log {self.path} could not be written ({error}): make room, then go on with resume=True"
            ) from error
        for name, value in values.items() if self.board is not None else ():
            self.board.add_scalar(name, value, step)

    def _write_rows(self, *, anew: bool) -> None:
        """The last row, or all of them under new headings."""
        with self.path.open("w" if anew else "a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.columns)
            if anew:
                writer.writeheader()
            writer.writerows(self.rows if anew else self.rows[-1:])


def _tensorboard(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        log.info("TensorBoard is not installed: logging to CSV only")
        return None
    return SummaryWriter(str(folder))
