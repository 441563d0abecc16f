"""Which sums a score enters: the total, that of its class, and that of its bin on every curve.

A curve shows a score against one parameter of the transform: degrees turned (either way), how far the centre
moved as a share of the shorter side, the factor of magnification. Only what the family varies has a curve.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from torchsite.errors import ShapeError
from torchsite.metrics.estimate import Figures
from torchsite.shapes import Labels
from torchsite.transforms import Transform, TransformFamily, angles, scales, shifts

N_BINS = 6
NO_ROOM = 1e-6  # a floor this near 1 is 1 as far as float32 maps can tell

PARAMETERS: Mapping[str, Callable[[Transform], Float[Tensor, " batch"]]] = {
    "angle": lambda transform: angles(transform).abs(),
    "shift": shifts,
    "scale": scales,
}


class Curve(NamedTuple):
    """Scores in the bins of one parameter; `edges` has one value more than `scores`."""

    edges: list[float]
    scores: list[Any]


@dataclass(frozen=True)
class Grouping:
    """The groups of a family of transforms and a number of classes."""

    n_classes: int
    edges: Mapping[str, list[float]]

    @classmethod
    def of_family(cls, family: TransformFamily, n_classes: int, n_bins: int = N_BINS) -> "Grouping":
        """Bins of equal width over each range that the family draws from."""
        low, high = family.scale
        reach = math.sqrt(2) * family.max_shift
        ranges = {"angle": (0.0, family.max_rotation), "shift": (0.0, reach), "scale": (low, high)}
        edges = {
            name: torch.linspace(low, high, n_bins + 1, dtype=torch.float64).tolist()
            for name, (low, high) in ranges.items()
            if low < high
        }
        return cls(n_classes, edges)

    def __len__(self) -> int:
        return 1 + self.n_classes + sum(len(edges) - 1 for edges in self.edges.values())

    def membership(self, classes: Labels, transform: Transform) -> Float[Tensor, "batch groups"]:
        """1 where a picture's score enters a group; values beyond a curve's range enter its last bin."""
        parts = [torch.ones(len(classes), 1, dtype=torch.float64)]
        if self.n_classes:
            parts.append(one_hot(classes.cpu(), self.n_classes))
        for name, edges in self.edges.items():
            inner = torch.tensor(edges[1:-1], dtype=torch.float64)
            values = PARAMETERS[name](transform).cpu()
            parts.append(one_hot(torch.bucketize(values, inner), len(edges) - 1))
        return torch.cat(parts, dim=1)

    def mean(
        self, classes: Labels, scores: Sequence[tuple[Transform, Float[Tensor, "batch scores"]]]
    ) -> Float[Tensor, "batch groups scores"]:
        """The scores under each transform in the groups that they enter, on average over the transforms."""
        total = torch.zeros(len(classes), len(self), scores[0][1].shape[1], dtype=torch.float64)
        for transform, found in scores:
            total += self.membership(classes, transform)[:, :, None] * found.cpu()[:, None, :] / len(scores)
        return total

    def split(self, scores: list[Figures]) -> tuple[Figures, list[Figures], dict[str, Curve]]:
        """The figures of every group, back to the total, the classes, the curves."""
        start = 1 + self.n_classes
        curves = {}
        for name, edges in self.edges.items():
            curves[name] = Curve(edges, scores[start : start + len(edges) - 1])
            start += len(edges) - 1
        return scores[0], scores[1 : 1 + self.n_classes], curves


def one_hot(values: Int64[Tensor, " batch"], n: int) -> Float[Tensor, "batch n"]:
    """A row of zeros with a one; values outside 0 … n-1 are errors."""
    if len(values) and not (int(values.min()) >= 0 and int(values.max()) < n):
        raise ShapeError(
            f"expected classes from 0 to {n - 1}, got {int(values.min())} to {int(values.max())}"
        )
    return torch.nn.functional.one_hot(values, n).double()


def partner_offset(number: int, n_transforms: int, n_images: int) -> int:
    """How far on in the batch a picture's partner stands under transform `number`: another one each time.

    Never 0, which would pair a picture with itself, except for a picture that is alone.
    """
    if n_images < 2:
        return 0
    return 1 + (number * (n_images - 1)) // n_transforms


def calibrated(score: Tensor, floor: Tensor) -> Tensor:
    """(score - floor) / (1 - floor): how much of the way from the floor to perfection; 0/0 is 0."""
    room = 1 - floor
    return torch.where(room.abs() < NO_ROOM, 0.0, (score - floor) / torch.where(room == 0, 1.0, room))
