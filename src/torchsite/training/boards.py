"""Boards on which a run can be looked at from elsewhere: TensorBoard's files, or Weights & Biases.

Neither is needed to train: the packages are imported when a board is asked for.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lightning.fabric.loggers.tensorboard import TensorBoardLogger

from torchsite.errors import ConfigError, did_you_mean
from torchsite.extras import needed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TensorBoard(TensorBoardLogger):
    """Event files in a folder: `tensorboard --logdir FOLDER` shows them."""

    def __init__(self, folder: Path, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(folder, name="", version="")

    @property
    def log_dir(self) -> str:
        """The folder as it is; Lightning would replace `$` and `~` in its name."""
        return self.root_dir

    def show(self, name: str, figure: "Figure", step: int) -> None:
        """The figure as a picture of the event file, written at once."""
        self.experiment.add_image(name, pixels(figure), step, dataformats="HWC")
        self.experiment.flush()


class WeightsAndBiases:
    """A run of the project `torchsite`; `WANDB_MODE=offline` keeps it on this machine."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.wandb = _import("wandb")
        folder.mkdir(parents=True, exist_ok=True)
        self.run: Any = self.wandb.init(project="torchsite", dir=str(folder), config=dict(config))

    def show(self, name: str, figure: "Figure", step: int) -> None:
        """The figure as a picture of the run."""
        self.run.log({name: self.wandb.Image(pixels(figure))}, step=step)

    def log_metrics(self, values: Mapping[str, float], step: int) -> None:
        """All numbers of a step at once."""
        self.run.log(dict(values), step=step)

    def finalize(self, status: str) -> None:
        """Send what is left."""
        self.run.finish()


Board = TensorBoard | WeightsAndBiases
BOARDS: Mapping[str, type[Board]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}


def check_board(name: str) -> None:
    """An error if the board is not known or not installed."""
    if name not in BOARDS:
        raise ConfigError(f"no board {name!r}: {did_you_mean(name, BOARDS)}")
    _import(name)


def pixels(figure: "Figure", dpi: int = 110) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A drawn figure as height × width × 3 bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(dpi)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _import(package: str) -> Any:
    install = "torchsite[tensorboard]" if package == "tensorboard" else package
    return needed(package, who="this board", install=install)
