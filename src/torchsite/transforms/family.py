"""A family of transforms: the distribution β ~ B from which training and measures draw.

The defaults are the ranges behind the paper's results: rotations uniform in [-90°, 90°] and shifts uniform
in ±25 % of the side (the text says ±h/2; the authors' code draws ±0.5 in normalised coordinates, which is
±h/4). Scale, shear, reflection and smooth distortion go beyond the paper.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeGuard

import torch

from torchsite.configs import from_mapping
from torchsite.errors import ConfigError
from torchsite.randomness import Rng, uniform
from torchsite.transforms.affine import AffineTransform
from torchsite.transforms.base import Transform
from torchsite.transforms.smooth import MAX_AMPLITUDE, SmoothTransform

LIMITS = {"max_rotation": 180, "max_shift": 1, "max_shear": 80, "distortion": MAX_AMPLITUDE}


@dataclass(frozen=True)
class TransformFamily:
    """Ranges to sample from; a transform scales, shears, mirrors, distorts, turns, then shifts."""

    max_rotation: float = 90.0
    max_shift: float = 0.25
    scale: tuple[float, float] = (1.0, 1.0)
    max_shear: float = 0.0
    reflect: bool = False
    distortion: float = 0.0

    def __post_init__(self) -> None:
        for name, high in LIMITS.items():
            value = getattr(self, name)
            if not _is_number(value) or not 0 <= value <= high:
                raise ConfigError(f"{name}: expected a number between 0 and {high}, got {value!r}")
        if not isinstance(self.reflect, bool):
            raise ConfigError(f"reflect: expected True or False, got {self.reflect!r}")
        object.__setattr__(self, "scale", _checked_scale(self.scale))

    @classmethod
    def none(cls) -> "TransformFamily":
        """The family with one member, the identity: pictures as they are."""
        return cls(max_rotation=0.0, max_shift=0.0)

    def sample(self, n: int, *, rng: Rng) -> Transform:
        """Draw `n` transforms; the same seed gives the same transforms on any device."""
        degrees = uniform(-self.max_rotation, self.max_rotation, n, rng)
        right, down = (uniform(-self.max_shift, self.max_shift, n, rng) for _ in range(2))
        posed = AffineTransform.pose(degrees, right, down)
        shape = self._sample_shape(n, rng)
        return posed if shape is None else posed @ shape

    def _sample_shape(self, n: int, rng: Rng) -> Transform | None:
        """Scale, shear, mirror, distortion; nothing where the family leaves shapes alone."""
        parts: list[Transform] = []
        if self.scale != (1.0, 1.0):
            low, high = (math.log(factor) for factor in self.scale)
            parts.append(AffineTransform.scale(uniform(low, high, n, rng).exp()))
        if self.max_shear:
            parts.append(AffineTransform.shear(uniform(-self.max_shear, self.max_shear, n, rng)))
        if self.reflect:
            parts.append(AffineTransform.reflection(torch.rand(n, generator=rng) < 0.5))
        if self.distortion:
            parts.append(SmoothTransform.sample(n, uniform(0, self.distortion, n, rng), rng))
        return reduce(lambda first, then: then @ first, parts) if parts else None

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> "TransformFamily":
        """Read a family from plain data; unknown fields are errors."""
        return from_mapping(cls, values)

    def __str__(self) -> str:
        """The ranges in words, for reports: every result states its range."""
        parts = [f"±{self.max_rotation:g}°", f"±{100 * self.max_shift:g} % shift"]
        if self.scale != (1.0, 1.0):
            parts.append(f"scale {self.scale[0]:g}–{self.scale[1]:g}")
        parts += [f"shear ±{self.max_shear:g}°"] if self.max_shear else []
        parts += ["mirrored"] if self.reflect else []
        parts += [f"distortion {self.distortion:g}"] if self.distortion else []
        return ", ".join(parts)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _checked_scale(scale: object) -> tuple[float, float]:
    match scale:
        case (low, high) if _is_number(low) and _is_number(high) and 0 < low <= high:
            return low, high
    raise ConfigError(f"scale: expected (low, high) with 0 < low ≤ high, got {scale!r}")
