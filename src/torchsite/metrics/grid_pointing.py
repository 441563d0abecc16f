"""Grid pointing: in a mosaic, does a class have its evidence in its tile? (GridPG: Rao et al., 2022.)

    mosaic m of k × k pictures of k² different classes, each classified correctly and with confidence
    share = mean over tiles t of  Σ_{u in t} max(I_{c_t}(m)_u, 0) / Σ_u max(I_{c_t}(m)_u, 0)

Every map that ignores the class gets 1/k², given beside it. The model must take the larger picture: one that
accepts a single size is refused (`NotApplicableError`).

Mosaics are made within each batch, in an order drawn from the seed, of as many of its pictures as there are
different classes for; a picture stands in one mosaic of each size at most. So sums add up over batches and
processes like those of every measure, and, as with mismatched floors, another batching makes other mosaics.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from torchsite.errors import ConfigError, NotApplicableError, ShapeError
from torchsite.metrics.energy_pointing import energy_inside
from torchsite.metrics.estimate import Estimate, estimate, ratio
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums
from torchsite.shapes import Images, Labels, Scores
from torchsite.transforms.patches import patch_numbers

SIDES = (2, 3)
CONFIDENCE = 0.9

Mosaics = Int64[Tensor, "mosaics tiles"]


class Tiles(NamedTuple):
    """The share of the evidence in the right tile, what knowing nothing gets, and the number of tiles."""

    share: Estimate
    chance: float
    n: int


class GridPointingResult(NamedTuple):
    """The shares in the smallest mosaics, and in all: "2x2", "3x3"."""

    share: Estimate
    chance: float
    mosaics: dict[str, Tiles]


def draw_mosaics(classes: Labels, eligible: Tensor, n_tiles: int, rng: torch.Generator) -> Mosaics:
    """Rows of pictures of different classes, none twice: always from the classes with most pictures left."""
    order = [i for i in torch.randperm(len(classes), generator=rng).tolist() if bool(eligible[i])]
    left: dict[int, list[int]] = {}
    for i in order:
        left.setdefault(int(classes[i]), []).append(i)
    found = []
    while len(left) >= n_tiles:
        chosen = sorted(left, key=lambda c: -len(left[c]))[:n_tiles]
        row = torch.tensor([left[c].pop() for c in chosen])
        found.append(row[torch.randperm(n_tiles, generator=rng)])
        left = {c: rows for c, rows in left.items() if rows}
    return torch.stack(found) if found else torch.zeros(0, n_tiles, dtype=torch.int64)


def assembled(images: Images, mosaics: Mosaics, side: int) -> Images:
    """The pictures of each mosaic, side by side, row by row."""
    tiles = images[mosaics].unflatten(1, (side, side))
    n, rows, cols, channels, height, width = tiles.shape
    return tiles.permute(0, 3, 1, 4, 2, 5).reshape(n, channels, rows * height, cols * width)


class GridPointing(Measure):
    """The share of the positive evidence for each class of a mosaic in its own tile."""

    needs_model = True
    headline = ("share", "chance")

    def __init__(
        self,
        explain: Any,
        model: Any = None,
        *,
        sides: Sequence[int] = SIDES,
        confidence: float = CONFIDENCE,
        **options: Any,
    ) -> None:
        super().__init__(explain, model, **options)
        if not sides or min(sides) < 2 or not 0 <= confidence < 1:
            raise ConfigError(f"expected sides from 2 and a confidence below 1, got {sides!r}, {confidence}")
        self.sides, self.confidence = tuple(sides), confidence
        self._add_sums(len(self.sides), 2)

    def passes(self) -> Passes:
        """At most: a map of a mosaic of each side, as large as its pictures; answers to choose, to check."""
        return Passes(sum(side**2 for side in self.sides), 1 + len(self.sides))

    def _update(self, batch: Batch) -> Statistics:
        probability, answers = self.explainer.logits(batch.images).double().softmax(1).max(1)
        eligible = ((answers == batch.labels) & (probability >= self.confidence)).cpu()
        return torch.stack([self._of_side(batch, eligible, side) for side in self.sides], dim=1)

    def _of_side(self, batch: Batch, eligible: Tensor, side: int) -> Statistics:
        """For each picture whether it stood in a mosaic, and the share of its class's evidence on it."""
        rows = torch.zeros(len(batch), 2, dtype=torch.float64)
        mosaics = draw_mosaics(batch.labels, eligible, side**2, self._rng(batch, "mosaics", side))
        for some in mosaics.split(max(1, len(batch) // side**4)):
            pictures = assembled(batch.images, some.to(batch.images.device), side)
            self._check_size(pictures, batch)
            if not len(some):  # a batch without enough confident pictures
                continue
            shares = self._shares(pictures, batch.labels[some.to(batch.labels.device)], side)
            rows[some.flatten()] = torch.stack([torch.ones_like(shares), shares], dim=1)
        return rows

    def _shares(self, pictures: Images, classes: Tensor, side: int) -> Scores:
        """One share per tile, mosaic by mosaic."""
        n_tiles = side**2
        maps = self.explainer(pictures.repeat_interleave(n_tiles, 0), classes.flatten())
        numbers = patch_numbers((maps.shape[-2], maps.shape[-1]), (side, side)).to(maps.device)
        own = torch.arange(n_tiles, device=maps.device).repeat(len(pictures))
        return energy_inside(maps, numbers == own[:, None, None]).cpu()

    def _check_size(self, pictures: Images, batch: Batch) -> None:
        try:
            self.explainer.logits(pictures[:1])
        except (RuntimeError, ShapeError, ValueError) as error:
            model, size = type(self.explainer.model).__name__, tuple(pictures.shape[-2:])
            raise NotApplicableError(
                f"{model} takes pictures of {batch.size} only, and a mosaic has {size}: {error}"
            ) from error

    def _compute(self, sums: Sums) -> GridPointingResult:
        found = {}
        for k, side in enumerate(self.sides):
            n, share = sums[:, k].unbind(1)
            found[f"{side}x{side}"] = Tiles(estimate(ratio(share, n)), side**-2, int(n[0]))
        first = found[f"{self.sides[0]}x{self.sides[0]}"]
        return GridPointingResult(first.share, first.chance, found)
