"""Pictures to be shown, explained in two poses: as they are, and moved by a transform of their own.

The pose of picture i depends on the seed and i alone: it is the same in every figure.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from torchsite.data import Dataset, batches, to_float
from torchsite.metrics import Poses
from torchsite.metrics.carried import carry
from torchsite.model import SITE
from torchsite.paper.arrays import save_arrays
from torchsite.results import Result
from torchsite.shapes import Labels
from torchsite.transforms import Transform

Rows = Int64[Tensor, " pictures"]


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


def explained(model: SITE, data: Dataset, rows: Rows) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
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
    notes = [
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
    return notes, {"images": images, "moved": moved} | maps


def keep(
    name: str,
    folder: Path,
    values: Mapping[str, Any],
    config: Mapping[str, Any],
    arrays: Mapping[str, Tensor],
    seconds: float,
) -> Result:
    """The result with its arrays beside it."""
    result = Result(name, values, config, 0, seconds)
    save_arrays(folder / f"{name}.npz", arrays)
    result.save(folder / f"{name}.json")
    return result
