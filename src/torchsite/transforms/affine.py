"""Affine transforms: rotation, shift, scale, shear, reflection, and all their products.

The matrix is the forward map p ↦ A p + b in the centred coordinates of `Transform`. Angles are degrees,
counter-clockwise as seen; shifts are fractions of the shorter side, to the right and downwards.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from torchsite.errors import ShapeError
from torchsite.shapes import Points, Size
from torchsite.transforms.base import Frame, Transform, check_lengths

Values = float | Float[Tensor, " batch"]
IDENTITY = {"xx": 1, "xy": 0, "x": 0, "yx": 0, "yy": 1, "y": 0, "0x": 0, "0y": 0, "1": 1}


@dataclass(frozen=True, eq=False)
class AffineTransform(Transform):
    """One affine map per picture, held in float64."""

    matrix: Float[Tensor, "batch 3 3"]

    def __post_init__(self) -> None:
        if self.matrix.ndim != 3 or self.matrix.shape[1:] != (3, 3):
            raise ShapeError(f"expected matrices of shape (batch, 3, 3), got {tuple(self.matrix.shape)}")
        object.__setattr__(self, "matrix", self.matrix.to(torch.float64))

    # Constructors, one per kind; a float makes a batch of one, a tensor a batch of its length.

    @classmethod
    def identity(cls, n: int = 1) -> "AffineTransform":
        """The transform that leaves `n` pictures as they are."""
        return cls(torch.eye(3, dtype=torch.float64).repeat(n, 1, 1))

    @classmethod
    def rotation(cls, degrees: Values) -> "AffineTransform":
        """Turn counter-clockwise about the centre; 90 is `rot90` of the last two axes."""
        return cls._with(**_turn(degrees))

    @classmethod
    def shift(cls, right: Values, down: Values) -> "AffineTransform":
        """Move by fractions of the shorter side: 0.5 moves the centre to the edge."""
        return cls._with(x=2 * _batch(right), y=2 * _batch(down))

    @classmethod
    def scale(cls, factor: Values) -> "AffineTransform":
        """Magnify about the centre."""
        s = _batch(factor)
        if not bool((s > 0).all()):
            raise ShapeError(f"scale factors must be positive, got {s.tolist()}: use `reflection` to mirror")
        return cls._with(xx=s, yy=s)

    @classmethod
    def shear(cls, degrees: Values) -> "AffineTransform":
        """Slide rows sideways: x ↦ x + tan(degrees)·y."""
        return cls._with(xy=torch.tan(torch.deg2rad(_batch(degrees))))

    @classmethod
    def reflection(cls, mirror: bool | Tensor = True) -> "AffineTransform":
        """Mirror left and right where `mirror` holds."""
        return cls._with(xx=1 - 2 * torch.as_tensor(mirror).reshape(-1).to(torch.float64))

    @classmethod
    def pose(cls, degrees: Values, right: Values, down: Values) -> "AffineTransform":
        """Turn about the centre, then move: `shift(right, down) @ rotation(degrees)`."""
        return cls._with(**_turn(degrees), x=2 * _batch(right), y=2 * _batch(down))

    @classmethod
    def _with(cls, **entries: Tensor) -> "AffineTransform":
        """The identity with some entries replaced: x' = xx·x + xy·y + x, y' = yx·x + yy·y + y."""
        lengths = {len(entry) for entry in entries.values()}
        if len(lengths - {1}) > 1:
            raise ShapeError(f"expected one value per picture, got {sorted(lengths)} values for one batch")
        n = max(lengths - {1}, default=1)
        some = next(iter(entries.values()))
        constants = (some.new_zeros(n), some.new_ones(n))
        columns = [entries.get(name, constants[one]).expand(n) for name, one in IDENTITY.items()]
        return cls(torch.stack(columns, dim=1).reshape(n, 3, 3))

    # What every transform can do.

    def __len__(self) -> int:
        return len(self.matrix)

    def __getitem__(self, index: "int | slice | Tensor") -> "AffineTransform":
        return AffineTransform(self.matrix[index].reshape(-1, 3, 3))

    def inverse(self) -> "AffineTransform":
        """The inverse matrices."""
        return AffineTransform(torch.linalg.inv(self.matrix))

    def to(self, device: torch.device | str) -> "AffineTransform":
        """The same matrices on another device."""
        return AffineTransform(self.matrix.to(device))

    def __matmul__(self, first: Transform) -> Transform:
        """The product of the matrices if both are affine."""
        if not isinstance(first, AffineTransform):
            return super().__matmul__(first)
        check_lengths(self, first)
        return AffineTransform(self.matrix @ first.matrix)

    def lookup(self, points: Points) -> Points:
        """p ↦ A⁻¹ (p - b)."""
        inverse = torch.linalg.inv(self.matrix)
        shift = inverse[:, None, None, :2, 2]
        return torch.einsum("nij,nhwj->nhwi", inverse[:, :2, :2], points) + shift

    def _grid(self, size: Size, dtype: torch.dtype) -> Points:
        """The lookup of all pixels as a sum of a term per row and a term per column: no product per pixel."""
        frame = Frame.of(size, self.device)
        inverse = torch.linalg.inv(self.matrix)[:, :2] / frame.half_sides[:, None]
        per_row = (inverse[:, :, 1, None] * frame.y + inverse[:, :, 2, None]).to(dtype)
        per_col = (inverse[:, :, 0, None] * frame.x).to(dtype)
        return (per_row[..., None] + per_col[:, :, None]).permute(0, 2, 3, 1)

    def affine_part(self) -> Float[Tensor, "batch 3 3"]:
        """The matrices themselves."""
        return self.matrix

    @property
    def device(self) -> torch.device:
        """Where the matrices live."""
        return self.matrix.device


def angles(transform: Transform) -> Float[Tensor, " batch"]:
    """The angle by which each transform turns, in degrees in (-180, 180]; a mirror is taken off first."""
    linear = _without_mirror(transform)
    return torch.rad2deg(torch.atan2(linear[:, 0, 1] - linear[:, 1, 0], linear[:, 0, 0] + linear[:, 1, 1]))


def shifts(transform: Transform) -> Float[Tensor, " batch"]:
    """How far the centre moves, as a fraction of the shorter side."""
    return transform.affine_part()[:, :2, 2].norm(dim=1) / 2


def scales(transform: Transform) -> Float[Tensor, " batch"]:
    """The factor by which lengths grow on average, √|det A|."""
    return torch.linalg.det(transform.affine_part()[:, :2, :2]).abs().sqrt()


def _without_mirror(transform: Transform) -> Float[Tensor, "batch 2 2"]:
    linear = transform.affine_part()[:, :2, :2]
    sign = torch.linalg.det(linear).sign()
    unmirror = torch.stack([sign, torch.ones_like(sign)], dim=1).diag_embed()
    return linear @ unmirror


def _batch(value: Values) -> Float[Tensor, " batch"]:
    return torch.as_tensor(value, dtype=torch.float64).reshape(-1)


def _turn(degrees: Values) -> dict[str, Tensor]:
    angle = torch.deg2rad(_batch(degrees))
    cos, sin = angle.cos(), angle.sin()
    return {"xx": cos, "xy": sin, "yx": -sin, "yy": cos}
