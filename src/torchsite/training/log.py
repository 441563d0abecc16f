"""The log of a run by Fabric's loggers (`logs/metrics.csv`, TensorBoard, Weights & Biases); a progress bar.

TensorBoard's files are written if it is installed, those of Weights & Biases on request.
"""

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning.fabric.loggers.csv_logs import CSVLogger
from lightning.fabric.loggers.logger import Logger
from lightning.fabric.loggers.tensorboard import TensorBoardLogger
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from torchsite.errors import ConfigError, TrainingError, did_you_mean
from torchsite.extras import needed
from torchsite.training.callback import Callback

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from torchsite.training.loop import Run

log = logging.getLogger(__name__)
SHOWN = ("loss", "accuracy")
MOST_STEPS_UNLOGGED = 20


class TensorBoard(TensorBoardLogger):
    """Event files in a folder: `tensorboard --logdir FOLDER` shows them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, name="", version="")

    @property
    def log_dir(self) -> str:
        """The folder as it is; Lightning would replace `$` and `~` in its name."""
        return self.root_dir

    def show(self, name: str, figure: "Figure", step: int) -> None:
        """Write the figure as a picture, at once."""
        self.experiment.add_figure(name, figure, step)
        self.experiment.flush()


class WeightsAndBiases(Logger):
    """A run of the project `torchsite`; `WANDB_MODE=offline` keeps it on this machine."""

    name = version = None

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.wandb = _import("wandb")
        self.run: Any = self.wandb.init(project="torchsite", dir=str(folder), config=dict(config))

    def show(self, name: str, figure: "Figure", step: int) -> None:
        """Send the figure as a picture."""
        self.run.log({name: self.wandb.Image(figure)}, step=step)

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """The run has its configuration from the start."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """All numbers of a step at once."""
        self.run.log(dict(metrics), step=step)

    def finalize(self, status: str) -> None:
        """Send what is left."""
        self.run.finish()


Board = TensorBoard | WeightsAndBiases
BOARDS = ("tensorboard", "wandb")


def check_board(name: str) -> None:
    """An error if the board is not known or not installed."""
    if name not in BOARDS:
        raise ConfigError(f"no board {name!r}: {did_you_mean(name, BOARDS)}")
    _import(name)


def _import(package: str) -> Any:
    install = "torchsite[tensorboard]" if package == "tensorboard" else package
    return needed(package, who="this board", install=install)


class TrainingLog(Callback):
    """Writes the losses of some steps and the measures of every validation to all loggers of the run.

    A resumed run begins a new table; the parts before are kept as `metrics-1.csv`, `metrics-2.csv` …
    """

    def started(self, run: "Run") -> None:
        """Rename an earlier table and open a new one."""
        self.every = max(1, min(MOST_STEPS_UNLOGGED, run.steps_per_epoch))
        self.path = run.folder / "logs" / "metrics.csv"
        if self.path.exists():
            parts = len(list(self.path.parent.glob(f"{self.path.stem}-*{self.path.suffix}")))
            self.path.replace(self.path.with_stem(f"{self.path.stem}-{parts + 1}"))
        run.loggers += open_loggers(self.path.parent)

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
        for logger in run.loggers:
            logger.finalize("success")

    def write(self, run: "Run", values: Mapping[str, float]) -> None:
        """Add a row; an error if the file cannot be written."""
        step = run.steps_done - 1
        try:
            for logger in run.loggers:
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


class ProgressBar(Callback):
    """A progress bar: epoch, loss and the time that is left."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns)
        self.task = self.bar.add_task("training", total=None)

    def started(self, run: "Run") -> None:
        """Show the bar at the current step."""
        self.bar.update(self.task, total=run.n_steps, completed=run.position)
        self.bar.start()

    def step_done(self, run: "Run", losses: Mapping[str, Tensor]) -> None:
        """One step more."""
        said = ", ".join(f"{name} {float(losses[name]):.3f}" for name in SHOWN if name in losses)
        description = f"epoch {run.epoch}/{run.config.epochs}: {said}"
        self.bar.update(self.task, completed=min(run.position, run.n_steps), description=description)

    def ended(self, run: "Run") -> None:
        """Leave the last line standing."""
        self.bar.stop()
