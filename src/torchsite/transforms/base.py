"""Transforms: immutable values that map each point of the result to a point of the source.

A transform T moves pictures: (T x)(p) = x(T⁻¹ p). It is stored as its *lookup*, the map p ↦ T⁻¹ p, because
that is what resampling needs; composing transforms composes lookups, so a chain is resampled only once.

Coordinates are centred and isotropic: the shorter side of the picture spans [-1, 1], whatever its
resolution. Hence the same T moves an image, its feature maps and its heatmaps alike, and a rotation is
rigid on pictures that are not square. (x points right, y points down, as in `grid_sample`.)
"""

import abc
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.errors import ShapeError
from torchsite.randomness import Rng
from torchsite.shapes import Maps, Masks, Points, Size
from torchsite.transforms.fill import Black, Fill, FillLike, as_fill

MASK_TOLERANCE = 1e-3
BLACK = Black()


class Transform(abc.ABC):
    """A batch of invertible transformations of the plane, one per picture."""

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def __getitem__(self, index: "int | slice | Tensor") -> "Transform":
        """The transforms of some pictures of the batch; an int gives a batch of one."""

    @abc.abstractmethod
    def inverse(self) -> "Transform":
        """The transform that undoes this one."""

    @abc.abstractmethod
    def to(self, device: torch.device | str) -> "Transform":
        """The same transform with its parameters on another device."""

    @abc.abstractmethod
    def lookup(self, points: Points) -> Points:
        """Where in the source each point of the result comes from: p ↦ T⁻¹ p."""

    @abc.abstractmethod
    def affine_part(self) -> "Float[Tensor, 'batch 3 3']":
        """The forward matrix of the affine part; the identity for a pure distortion."""

    @property
    @abc.abstractmethod
    def device(self) -> torch.device:
        """Where the parameters live."""

    def __matmul__(self, first: "Transform") -> "Transform":
        """`T @ U`: first U, then T, in one resampling."""
        return Composition(self, first)

    def __call__(self, maps: Maps, *, fill: FillLike = BLACK, rng: Rng | None = None) -> Maps:
        """Move maps of any resolution and any number of channel axes; outside the frame is `fill`: 0."""
        self._check(maps)
        flat = maps.reshape(len(maps), -1, *maps.shape[-2:]) if maps.ndim != 4 else maps
        grid = self._grid((maps.shape[-2], maps.shape[-1]), maps.dtype)
        return _sampled(flat, grid, as_fill(fill), rng).reshape(maps.shape)

    def cropped_from(
        self, larger: Maps, size: Size, *, fill: FillLike = BLACK, rng: Rng | None = None
    ) -> Maps:
        """Move the centre crop of larger pictures, with its surroundings instead of corners."""
        self._check(larger)
        ratios = [part / whole for part, whole in zip(size, larger.shape[-2:], strict=True)]
        if larger.ndim != 4 or max(ratios) > 1:
            raise ShapeError(
                f"no crop of {size} in pictures of shape {tuple(larger.shape)}: give larger ones"
            )
        grid = self._grid(size, larger.dtype) * larger.new_tensor(ratios[::-1])
        return _sampled(larger, grid, as_fill(fill), rng)

    def mask(self, size: Size) -> Masks:
        """m = 1 where the result shows the picture, 0 where it shows padding: T(1) > 1 - 1e-3."""
        ones = torch.ones(len(self), 1, *size, device=self.device)
        return (self(ones) > 1 - MASK_TOLERANCE).squeeze(1)

    def _grid(self, size: Size, dtype: torch.dtype) -> Points:
        """The lookup in the coordinates of `grid_sample`, where both sides span [-1, 1]."""
        frame = Frame.of(size, self.device)
        points = frame.pixel_centres().expand(len(self), *size, 2)
        return (self.lookup(points) / frame.half_sides).to(dtype)

    def _check(self, maps: Maps) -> None:
        if maps.ndim < 3 or len(maps) != len(self):
            raise ShapeError(
                f"a transform of {len(self)} pictures takes maps of shape ({len(self)}, …, rows, cols), "
                f"got {tuple(maps.shape)}: sample one transform per picture"
            )
        if not maps.is_floating_point():
            raise ShapeError(
                f"transforms move floating-point maps, got {maps.dtype}: convert with `.float() / 255`"
            )


@dataclass(frozen=True, eq=False)
class Composition(Transform):
    """`outer @ inner` where no closed form exists: the two lookups in turn."""

    outer: Transform
    inner: Transform

    def __post_init__(self) -> None:
        check_lengths(self.outer, self.inner)

    def __len__(self) -> int:
        return len(self.outer)

    def __getitem__(self, index: "int | slice | Tensor") -> Transform:
        return Composition(self.outer[index], self.inner[index])

    def inverse(self) -> Transform:
        """(T U)⁻¹ = U⁻¹ T⁻¹."""
        return Composition(self.inner.inverse(), self.outer.inverse())

    def to(self, device: torch.device | str) -> Transform:
        """The same composition on another device."""
        return Composition(self.outer.to(device), self.inner.to(device))

    def lookup(self, points: Points) -> Points:
        """(T U)⁻¹ p = U⁻¹ (T⁻¹ p)."""
        return self.inner.lookup(self.outer.lookup(points))

    def affine_part(self) -> "Float[Tensor, 'batch 3 3']":
        """The product of the affine parts."""
        return self.outer.affine_part() @ self.inner.affine_part()

    @property
    def device(self) -> torch.device:
        """Where the parameters live."""
        return self.outer.device


def _sampled(maps: Maps, grid: Points, fill: Fill, rng: Rng | None) -> Maps:
    """The maps at the points of the grid; what lies outside of them shows the filling."""
    moved = F.grid_sample(maps, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    if fill == BLACK:
        return moved
    ones = torch.ones_like(maps[:, :1])
    seen = F.grid_sample(ones, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    return moved + (1 - seen) * fill.around(maps, grid, rng=rng)


def check_lengths(first: Transform, second: Transform) -> None:
    """Transforms of different batches cannot be combined."""
    if len(first) != len(second):
        raise ShapeError(f"transforms of {len(first)} and of {len(second)} pictures cannot be composed")


@dataclass(frozen=True, eq=False)
class Frame:
    """A picture's frame in the coordinates of the lookup: where its rows, columns and edges are."""

    y: Float[Tensor, " rows"]
    x: Float[Tensor, " cols"]
    half_sides: Float[Tensor, "2"]

    @classmethod
    @lru_cache(maxsize=64)
    @torch.inference_mode(False)  # frames are kept, so they must also serve where gradients are taken
    def of(cls, size: Size, device: torch.device) -> "Frame":
        """The frame of pictures of one size; the shorter side spans [-1, 1]."""
        rows, cols = size
        half_sides = torch.tensor([cols, rows], dtype=torch.float64) / min(rows, cols)
        y, x = ((2 * torch.arange(n, dtype=torch.float64) + 1) / n - 1 for n in size)
        return cls((y * half_sides[1]).to(device), (x * half_sides[0]).to(device), half_sides.to(device))

    def pixel_centres(self) -> Points:
        """The centre of every pixel: (1, rows, cols, 2)."""
        y, x = torch.meshgrid(self.y, self.x, indexing="ij")
        return torch.stack([x, y], dim=-1).unsqueeze(0)
