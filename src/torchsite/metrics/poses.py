"""Which transforms each picture meets: a table drawn from the seed and the picture's index alone.

Neither the batch size, nor the order, nor the explainer, nor the number of transforms asked for changes the
t-th transform of picture i; hence all explainers of a comparison meet the same poses, and a run on two
machines meets the poses of a run on one. Indices are drawn in blocks, because sampling transforms one by one
would cost more than applying them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from jaxtyping import Int64
from torch import Tensor

from torchsite.errors import ConfigError
from torchsite.randomness import make_rng
from torchsite.transforms import AffineTransform, SmoothTransform, Transform, TransformFamily
from torchsite.transforms.base import Composition

BLOCK = 512

Kind = TypeVar("Kind", bound=Transform)


@dataclass(frozen=True)
class Poses:
    """`n` transforms of a family for every picture, from a seed."""

    family: TransformFamily = field(default_factory=TransformFamily)
    n: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ConfigError(f"n: expected at least one transform per picture, got {self.n}")

    def of(self, indices: Int64[Tensor, " batch"], number: int) -> Transform:
        """The transform number `number` of each of these pictures, as one batch."""
        blocks = indices.div(BLOCK, rounding_mode="floor")
        inside = indices.remainder(BLOCK)
        found, order = blocks.unique(return_inverse=True)
        pieces = [
            self._block(int(block), number)[inside[order == k]] for k, block in enumerate(found.tolist())
        ]
        back = torch.argsort(torch.argsort(order, stable=True))
        return join(pieces)[back] if len(pieces) != 1 else pieces[0]

    def _block(self, block: int, number: int) -> Transform:
        return self.family.sample(BLOCK, rng=make_rng(self.seed, "poses", block, number))


def join(transforms: Sequence[Transform]) -> Transform:
    """Several batches of transforms of one family as a single batch."""
    kinds = {type(transform) for transform in transforms}
    if kinds == {AffineTransform}:
        return AffineTransform(torch.cat([part.matrix for part in _all(AffineTransform, transforms)]))
    if kinds == {SmoothTransform}:
        smooth = _all(SmoothTransform, transforms)
        parts = ([p.coefficients for p in smooth], [p.phases for p in smooth])
        return SmoothTransform(torch.cat(parts[0]), torch.cat(parts[1]), inverted=smooth[0].inverted)
    if kinds == {Composition}:
        composed = _all(Composition, transforms)
        return Composition(join([part.outer for part in composed]), join([part.inner for part in composed]))
    names = ", ".join(sorted(kind.__name__ for kind in kinds)) or "none"
    raise ConfigError(f"only transforms of one family can be joined, got {names}")


def _all(kind: type[Kind], transforms: Sequence[Transform]) -> list[Kind]:
    return [transform for transform in transforms if isinstance(transform, kind)]
