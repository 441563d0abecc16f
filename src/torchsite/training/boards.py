"""Boards on which a run can be looked at from elsewhere: TensorBoard's files, or Weights & Biases.

Both take figures by name and numbers by name, each for a step of the run. Neither is needed to train: the
packages are imported when a board is asked for.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from torchsite.errors import ConfigError, did_you_mean
from torchsite.extras import needed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Board(Protocol):
    """Somewhere to show a run."""

    def show(self, name: str, figure: "Figure", step: int) -> None:
        """A figure, as it is after a step."""

    def note(self, values: Mapping[str, float], step: int) -> None:
        """Numbers, as they are after a step."""

    def close(self) -> None:
        """Nothing more will come."""


class TensorBoard:
    """Event files in a folder: `tensorboard --logdir FOLDER` shows them."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        _import("tensorboard", "torchsite[tensorboard]")
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = SummaryWriter(str(folder))

    def show(self, name: str, figure: "Figure", step: int) -> None:
        """The figure as a picture of the event file, there at once for whoever looks."""
        self.writer.add_image(name, pixels(figure), step, dataformats="HWC")
        self.writer.flush()

    def note(self, values: Mapping[str, float], step: int) -> None:
        """One curve for each name."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Close the file."""
        self.writer.close()


class WeightsAndBiases:
    """A run of the project `torchsite`; `WANDB_MODE=offline` keeps it on this machine."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.wandb = _import("wandb", "wandb")
        folder.mkdir(parents=True, exist_ok=True)
        self.run: Any = self.wandb.init(project="torchsite", dir=str(folder), config=dict(config))

    def show(self, name: str, figure: "Figure", step: int) -> None:
        """The figure as a picture of the run."""
        self.run.log({name: self.wandb.Image(pixels(figure))}, step=step)

    def note(self, values: Mapping[str, float], step: int) -> None:
        """All numbers of a step at once."""
        self.run.log(dict(values), step=step)

    def close(self) -> None:
        """Send what is left."""
        self.run.finish()


BOARDS: Mapping[str, type[TensorBoard] | type[WeightsAndBiases]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}


def check_board(name: str) -> None:
    """A board that is not known or not installed is an error before anything is trained."""
    if name not in BOARDS:
        raise ConfigError(f"no board {name!r}: {did_you_mean(name, BOARDS)}")
    _import(name, "torchsite[tensorboard]" if name == "tensorboard" else name)


def open_board(name: str, folder: Path, config: Mapping[str, Any]) -> Board:
    """The board of this name; its files go to `folder`."""
    check_board(name)
    return BOARDS[name](folder, config)


def pixels(figure: "Figure", dpi: int = 110) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A drawn figure as height × width × 3 bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(dpi)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _import(package: str, install: str) -> Any:
    return needed(package, who="this board", install=install)
