"""The log of a run: `logs/metrics.csv`, and TensorBoard's files beside it where it is installed."""

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lightning.fabric.loggers.csv_logs import CSVLogger
from lightning.fabric.loggers.logger import Logger
from torch import Tensor

from torchsite.errors import TrainingError
from torchsite.training.boards import TensorBoard
from torchsite.training.callback import Callback

if TYPE_CHECKING:
    from torchsite.training.loop import Run

log = logging.getLogger(__name__)


class TrainingLog(Callback):
    """Writes the losses of every so many steps and the measures of every validation.

    A resumed run begins a new file; the parts before are kept as `metrics-1.csv`, `metrics-2.csv` …
    """

    def __init__(self, folder: Path, every: int) -> None:
        self.path, self.every = folder / "metrics.csv", every
        self.loggers: list[Logger] = []

    def started(self, run: "Run") -> None:
        """Move the log so far aside and open the new one."""
        if self.path.exists():
            parts = len(list(self.path.parent.glob(f"{self.path.stem}-*{self.path.suffix}")))
            self.path.replace(self.path.with_stem(f"{self.path.stem}-{parts + 1}"))
        self.loggers = open_loggers(self.path.parent)

    def step_done(self, run: "Run", losses: Mapping[str, Tensor]) -> None:
        """One row, if it is time."""
        if run.steps_done % self.every == 0:
            rate = run.learning_rate_factor * run.config.learning_rate
            self.write(run, {name: float(value) for name, value in losses.items()} | {"learning rate": rate})

    def validated(self, run: "Run", measures: Mapping[str, float], seconds: float) -> None:
        """One row."""
        self.write(run, {f"validation {name}": value for name, value in measures.items()})

    def ended(self, run: "Run") -> None:
        """Close the files."""
        for logger in self.loggers:
            logger.finalize("success")

    def write(self, run: "Run", values: Mapping[str, float]) -> None:
        """Add a row; an error if the file cannot be written."""
        step = run.steps_done - 1
        try:
            for logger in self.loggers:
                logger.log_metrics({"epoch": step // run.steps_per_epoch, **values}, step)
                logger.save()
        except OSError as error:
            raise TrainingError(
                f"the log {self.path} could not be written ({error}): make room, then go on with resume=True"
            ) from error


def open_loggers(folder: Path) -> list[Logger]:
    """Fabric's loggers for a folder; TensorBoard's only where it is installed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Experiment logs directory .* exists and is not empty")
        table = CSVLogger(folder, name="", version="", flush_logs_every_n_steps=2**62)
        table.experiment  # noqa: B018 - opens the folder, and warns of earlier parts
    try:
        return [table, TensorBoard(folder)]
    except ModuleNotFoundError:
        log.info("TensorBoard is not installed: logging to CSV only")
        return [table]
