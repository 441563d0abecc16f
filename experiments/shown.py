"""Pictures to be shown, explained and drawn in two poses: as they are, and moved by a transform of their own.

The pose of picture i depends on the seed and i alone: it is the same in every figure. Heatmaps are drawn on
scales of their own, symmetric about zero: red speaks for the class, blue against it.
"""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import torch
from jaxtyping import Int64
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from experiments.registry import Arrays
from torchsite.data import Dataset, batches, to_float
from torchsite.metrics import Poses
from torchsite.metrics.carried import carry
from torchsite.model import SITE
from torchsite.model.drawing import COLOURS, new_figure, show_picture
from torchsite.results import Result
from torchsite.shapes import Labels
from torchsite.transforms import Transform

Rows = Int64[Tensor, " pictures"]

Shown = TypedDict(
    "Shown",
    {
        "row": int,
        "class": str,
        "predicted": str,
        "predicted when moved": str,
        "probability": float,
        "self-consistency": float,
    },
)


def pose_of(model: SITE, rows: Rows) -> Transform:
    """The transform that each of these pictures is shown under."""
    return Poses(model.config.family, n=1).of(rows, 0)


def predictions(model: SITE, data: Dataset, batch_size: int = 250) -> Labels:
    """What the model says to every picture, as it is."""
    with torch.no_grad():
        return torch.cat([model.eval()(images).argmax(1) for images, _ in batches(data, batch_size)])


def first_right(predicted: Labels, data: Dataset, classes: Sequence[int], n: int) -> Rows:
    """The first `n` pictures of each class that are classified correctly, class by class."""
    right = predicted == data.labels
    return torch.cat([(right & (data.labels == label)).nonzero().flatten()[:n] for label in classes])


def preferred(data: Dataset, names: Sequence[str]) -> list[int]:
    """The numbers of all classes, the named ones first."""
    return sorted(range(len(data.classes)), key=lambda i: _place(names, data.classes[i]))


def _place(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def explained(model: SITE, data: Dataset, rows: Rows) -> tuple[list[Shown], dict[str, Tensor]]:
    """What there is to say of each picture, and its arrays.

    These are the picture, the map of its predicted class, I(x); both for the moved picture, I(T x); and the
    map that was moved, T(I(x)).
    """
    images = to_float(data.images[rows])
    transform = pose_of(model, rows)
    moved = transform(images)
    before, after = model.explain(images), model.explain(moved)
    classes = before.predicted
    both = carry(before.heatmaps(classes=classes), after.heatmaps(classes=classes), transform)
    scores = both.raw
    shown: list[Shown] = [
        {
            "row": int(rows[i]),
            "class": data.classes[int(data.labels[rows[i]])],
            "predicted": data.classes[int(classes[i])],
            "predicted when moved": data.classes[int(after.predicted[i])],
            "probability": float(before.probabilities[i].max()),
            "self-consistency": float(scores[i]),
        }
        for i in range(len(rows))
    ]
    maps = {"maps": both.untouched, "moved_maps": both.renewed, "carried_maps": both.carried}
    return shown, {"images": images, "moved": moved} | maps


def sheet_of(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """All pictures of a result on one sheet; none without arrays."""
    return {result.name: draw_two_poses(result.values["pictures"], arrays)} if arrays else {}


def draw_two_poses(shown: Sequence[Shown], arrays: Arrays) -> Figure:
    """Pictures above, explanations below; each picture beside its moved self."""
    figure, grid = new_figure(2, 2 * len(shown), 1.2)
    for i, one in enumerate(shown):
        as_is, moved = arrays["images"][i], arrays["moved"][i]
        show_picture(grid[0][2 * i], as_is, one["predicted"])
        show_picture(grid[0][2 * i + 1], moved, one["predicted when moved"])
        show_overlay(grid[1][2 * i], as_is, arrays["maps"][i])
        cosine = f"cosine {one['self-consistency']:.2f}"
        show_overlay(grid[1][2 * i + 1], moved, arrays["moved_maps"][i], cosine)
    return figure


def show_overlay(axes: Axes, image: Tensor, heatmap: Tensor, title: str = "") -> None:
    """A faint grey picture, and over it the map: the stronger the evidence, the less the picture is seen."""
    grey = 0.6 + 0.4 * np.asarray(image.float().mean(0).clamp(0, 1))
    values = np.asarray(heatmap.float())
    bound = float(np.abs(values).max()) or 1.0
    axes.imshow(grey, cmap="gray", vmin=0, vmax=1)
    strength = np.clip(np.abs(values) / bound, 0, 1) ** 0.7
    axes.imshow(values, cmap=COLOURS, vmin=-bound, vmax=bound, alpha=strength)
    axes.set_title(title, fontsize=7, pad=2)
