"""Transformations of pictures as values: sample, apply, invert, compose, mask; and what fills the gaps."""

from torchsite.transforms.affine import AffineTransform, angles, scales, shifts
from torchsite.transforms.base import Transform
from torchsite.transforms.family import TransformFamily
from torchsite.transforms.fill import FILLS, Fill, FillLike, as_fill
from torchsite.transforms.smooth import SmoothTransform

__all__ = [
    "FILLS",
    "AffineTransform",
    "Fill",
    "FillLike",
    "SmoothTransform",
    "Transform",
    "TransformFamily",
    "angles",
    "as_fill",
    "scales",
    "shifts",
]
