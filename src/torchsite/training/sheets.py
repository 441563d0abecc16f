"""Explanation sheets during training: one sees the maps being learnt.

    fit(model, data, folder="runs/own", callbacks=[ExplanationSheets("tensorboard", "runs/own/logs/sheets")])
    torchsite train … --log tensorboard

After each validation the same few pictures are explained, each as it is and in one pose, with the weights
that were validated. TensorBoard wants a folder of its own for them: it follows only the newest file of a
folder, and the numbers are in `logs` already. Weights & Biases gets the numbers as well.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from torchsite.configs import to_mapping
from torchsite.model import SITE, Explanation
from torchsite.model.drawing import Raster, draw_tiles, heatmap_tile, picture_tile
from torchsite.modes import evaluating
from torchsite.randomness import make_rng
from torchsite.shapes import Images, Labels
from torchsite.training.batches import look_up
from torchsite.training.callback import Callback
from torchsite.training.log import BOARDS, Board, check_board

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from torchsite.training.loop import Run

N_PICTURES = 4
NUMBERS_EVERY = 20


class ExplanationSheets(Callback):
    """Writes a sheet after each validation; the first process writes, a black box has none to write."""

    def __init__(self, board: str, folder: Path | str, n_pictures: int = N_PICTURES) -> None:
        check_board(board)
        self.name, self.folder, self.n_pictures = board, Path(folder), n_pictures
        self.board: Board | None = None

    def started(self, run: "Run") -> None:
        """Open the board; the untrained model is the first sheet."""
        if not run.fabric.is_global_zero:
            return
        config = {"training": to_mapping(run.config), "model": to_mapping(run.model.config)}
        self.board = BOARDS[self.name](self.folder, config)
        if run.steps_done == 0:
            self._show(run)

    def step_done(self, run: "Run", losses: Mapping[str, Tensor]) -> None:
        """The losses, if it is time."""
        if run.steps_done % NUMBERS_EVERY == 0:
            self._note(run, {name: float(value) for name, value in losses.items()})

    def validated(self, run: "Run", measures: Mapping[str, float], seconds: float) -> None:
        """What was found, and the sheet beside it."""
        self._note(run, {f"validation {name}": value for name, value in measures.items()})
        self._show(run)

    def ended(self, run: "Run") -> None:
        """Close the board."""
        if self.board is not None:
            self.board.finalize("success")

    def _note(self, run: "Run", values: Mapping[str, float]) -> None:
        if self.board is not None and self.name != "tensorboard":
            self.board.log_metrics(values, run.steps_done)

    def _show(self, run: "Run") -> None:
        if self.board is not None and isinstance(run.model, SITE):
            self.board.show("explanations", draw_progress(run, self.n_pictures), run.steps_done)


@torch.no_grad()
def draw_progress(run: "Run", n_pictures: int = N_PICTURES) -> "Figure":
    """A few pictures, upright and posed, explained with the weights as they are now, a row for each."""
    assert isinstance(run.model, SITE)
    images, labels, posed = shown_pictures(run, n_pictures)
    with evaluating(run.model):
        explanations = [run.model.explain(pictures) for pictures in (images, posed)]
    rows = [
        [tile for explanation in explanations for tile in tiles_of(explanation, i, int(labels[i]))]
        for i in range(len(images))
    ]
    return draw_tiles(rows, f"step {run.steps_done:,} of {run.n_steps:,}: upright, then posed")


def tiles_of(explanation: Explanation, index: int, label: int) -> list[tuple[Raster, str]]:
    """The picture; the prototype of its class; the evidence for its class and for the strongest other."""
    names, logits = explanation.classes, explanation.logits[index].clone()
    seen = int(logits.argmax())
    logits[label] = -torch.inf
    other = int(logits.argmax())
    maps = explanation.heatmaps()[index]
    limit = float(maps[[label, other]].abs().max())
    pictures = explanation.prototype_pictures(index)  # learned features have none while they are learnt
    return [
        (picture_tile(explanation.images[index]), f"seen as {names[seen]}"),
        *([] if pictures is None else [(picture_tile(pictures[label]), f"prototype {names[label]}")]),
        *(
            (heatmap_tile(maps[k], limit), f"{names[k]}: Σ {float(maps[k].sum()):.1f}")
            for k in (label, other)
        ),
    ]


def shown_pictures(run: "Run", n_pictures: int) -> tuple[Images, Labels, Images]:
    """Pictures, labels and posed pictures, the same at every call.

    They are spread over the validation, for folders are sorted by class.
    """
    n = min(n_pictures, len(run.validation))
    rows = torch.linspace(0, len(run.validation) - 1, n).long()
    images, labels = look_up(run.validation, rows, next(run.model.parameters()))
    pose = run.config.family.sample(n, rng=make_rng(run.config.seed, "sheets")).to(images.device)
    return images, labels, pose(images)
