"""Transformations of pictures as values: sample, apply, invert, compose, mask."""

from torchsite.transforms.affine import AffineTransform, angles, scales, shifts
from torchsite.transforms.base import Transform
from torchsite.transforms.family import TransformFamily
from torchsite.transforms.smooth import SmoothTransform

__all__ = ["AffineTransform", "SmoothTransform", "Transform", "TransformFamily", "angles", "scales", "shifts"]
