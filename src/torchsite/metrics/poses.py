"""Which transforms each picture meets: a table drawn from the seed and the picture's index alone.

Neither the batch size, nor the order, nor the explainer, nor the number of transforms asked for changes the
t-th transform of picture i; hence all explainers of a comparison meet the same poses, and a run on two
machines meets the poses of a run on one. Indices are drawn in blocks, because sampling transforms one by one
would cost more than applying them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from torchsite.errors import ConfigError
from torchsite.randomness import make_rng
from torchsite.transforms import Transform, TransformFamily

BLOCK = 512


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
    if len(kinds) != 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds)) or "none"
        raise ConfigError(f"only transforms of one family can be joined, got {names}")
    parts: dict[str, Any] = {}
    for name, first in vars(transforms[0]).items():
        values = [getattr(transform, name) for transform in transforms]
        if isinstance(first, Tensor):
            parts[name] = torch.cat(values)
        else:
            parts[name] = join(values) if isinstance(first, Transform) else first
    return kinds.pop()(**parts)
