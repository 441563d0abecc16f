"""Explanation sheets during training: the maps of a few pictures after each validation.

    fit(model, data, folder="runs/own", callbacks=[ExplanationSheets("tensorboard")])
    torchsite train … --log tensorboard

After each validation the same few pictures are explained, each as it is and in one pose, with the weights
that were validated.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from torchsite.configs import to_mapping
from torchsite.model import SITE, Explanation
from torchsite.model.drawing import Raster, draw_tiles, heatmap_tile, picture_tile
from torchsite.modes import evaluating
from torchsite.randomness import make_rng
from torchsite.shapes import Images
from torchsite.training.batches import look_up
from torchsite.training.callback import Callback
from torchsite.training.log import Board, WeightsAndBiases, check_board

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from torchsite.training.loop import Run

N_PICTURES = 4


class ExplanationSheets(Callback):
    """Adds a sheet to the log after each validation; Weights & Biases gets the numbers as well.

    The first process writes; a black box has no sheets.
    """

    def __init__(self, board: str, n_pictures: int = N_PICTURES) -> None:
        check_board(board)
        self.board, self.n_pictures = board, n_pictures

    def started(self, run: "Run") -> None:
        """Open the board; the untrained model is the first sheet."""
        if self.board == "wandb" and run.fabric.is_global_zero:
            config = {"training": to_mapping(run.config), "model": to_mapping(run.model.config)}
            run.loggers.append(WeightsAndBiases(run.folder / "logs", config))
        if run.steps_done == 0:
            self._show(run)

    def validated(self, run: "Run", measures: Mapping[str, float], seconds: float) -> None:
        """Add the sheet of these weights."""
        self._show(run)

    def _show(self, run: "Run") -> None:
        boards = [logger for logger in run.loggers if isinstance(logger, Board)]
        if boards and isinstance(run.model, SITE):
            figure = draw_progress(run, self.n_pictures)
            for board in boards:
                board.show("explanations", figure, run.steps_done)


@torch.no_grad()
def draw_progress(run: "Run", n_pictures: int = N_PICTURES) -> "Figure":
    """A few pictures, upright and posed, explained with the weights as they are now, a row for each."""
    assert isinstance(run.model, SITE)
    with evaluating(run.model):
        explanation = run.model.explain(shown_pictures(run, n_pictures))
    tiles = [tiles_of(explanation, i) for i in range(len(explanation))]
    rows = [upright + posed for upright, posed in zip(tiles[::2], tiles[1::2], strict=True)]
    return draw_tiles(rows, f"step {run.steps_done:,} of {run.n_steps:,}: upright, then posed")


def tiles_of(explanation: Explanation, index: int) -> list[tuple[Raster, str]]:
    """The picture, the prototype of its strongest class, and the evidence for the two strongest classes."""
    names, maps = explanation.classes, explanation.heatmaps()[index]
    first, second = explanation.logits[index].topk(2).indices.tolist()
    limit = float(maps[[first, second]].abs().max())
    tiles = [(picture_tile(explanation.images[index]), f"seen as {names[first]}")]
    pictures = explanation.prototype_pictures(index)  # learned features have none while they are learnt
    if pictures is not None:
        tiles.append((picture_tile(pictures[first]), f"prototype {names[first]}"))
    return tiles + [
        (heatmap_tile(maps[k], limit), f"{names[k]}: Σ {float(maps[k].sum()):.1f}") for k in (first, second)
    ]


def shown_pictures(run: "Run", n_pictures: int) -> Images:
    """Some pictures of the validation, each upright and then posed; the same at every call.

    They are spread over the validation, for folders are sorted by class.
    """
    n = min(n_pictures, len(run.validation))
    rows = torch.linspace(0, len(run.validation) - 1, n).long()
    images, _ = look_up(run.validation, rows, next(run.model.parameters()))
    pose = run.config.family.sample(n, rng=make_rng(run.config.seed, "sheets")).to(images.device)
    return torch.stack([images, pose(images)], dim=1).flatten(0, 1)
