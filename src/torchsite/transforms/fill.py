"""Fillings: what is shown in the corners of a posed picture, and in a part that is hidden.

    corners   T(x) + (1 - T(1)) ⊙ filling          `transform(images, fill="mean")`
    a part    M ⊙ x + (1 - M) ⊙ filling            `fill.replace(images, shown)`

A filling is a value and has a name. Black is the paper's and the default; but black corners show a network
the pose of the frame, and a black patch is unlike any picture, so training and measures can use others.
"""

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Int64
from torch import Tensor

from torchsite.errors import ConfigError, NotApplicableError, ShapeError, did_you_mean
from torchsite.randomness import Rng
from torchsite.shapes import Images, Masks, Points


class Fill(abc.ABC):
    """What is shown instead of a picture; random ones draw from `rng`."""

    @property
    def name(self) -> str:
        """How tables call it: its name in FILLS, else what it is."""
        return next((name for name, fill in FILLS.items() if fill == self), repr(self))

    @abc.abstractmethod
    def background(self, images: Images, *, rng: Rng | None = None) -> Images:
        """The filling of each picture, as a whole picture."""

    def around(self, images: Images, grid: Points, *, rng: Rng | None = None) -> Images:
        """The filling of posed pictures, where `grid` says from where each pixel comes (`grid_sample`)."""
        background = self.background(images, rng=rng)
        size = (grid.shape[1], grid.shape[2])
        return background if background.shape[-2:] == size else _centre(background, size)

    def replace(self, images: Images, shown: Masks, *, rng: Rng | None = None) -> Images:
        """The pictures where `shown`, the filling elsewhere."""
        if shown.shape[-2:] != images.shape[-2:]:
            raise ShapeError(
                f"shown: expected masks of {tuple(images.shape[-2:])}, got {tuple(shown.shape[-2:])}"
            )
        return torch.where(shown[:, None], images, self.background(images, rng=rng))


@dataclass(frozen=True)
class Colour(Fill):
    """One colour for all pictures: a value, or one per channel."""

    values: tuple[float, ...] = (0.0,)

    def background(self, images: Images, *, rng: Rng | None = None) -> Images:
        """The colour everywhere."""
        if len(self.values) not in (1, images.shape[1]):
            raise ConfigError(
                f"fill: expected 1 or {images.shape[1]} values (one per channel), got {len(self.values)}"
            )
        values = torch.tensor(self.values, dtype=images.dtype, device=images.device)
        return values[None, :, None, None].expand_as(images)


class Black(Colour):
    """Zeros."""

    def __init__(self) -> None:
        super().__init__((0.0,))


@dataclass(frozen=True)
class OwnMean(Fill):
    """The mean colour of the picture itself."""

    def background(self, images: Images, *, rng: Rng | None = None) -> Images:
        """Each picture's mean colour everywhere: a picture without content."""
        return images.mean((-2, -1), keepdim=True).expand_as(images)


@dataclass(frozen=True)
class OtherPicture(Fill):
    """Another picture of the batch, upright: the same number of places on for all, drawn from `rng`."""

    def background(self, images: Images, *, rng: Rng | None = None) -> Images:
        """The batch in another order, no picture in its own place."""
        if len(images) < 2:
            raise ShapeError("another picture fills: expected a batch of two or more pictures, got one")
        offset = int(torch.randint(1, len(images), (1,), generator=_required(rng, self.name)))
        return images.roll(-offset, 0)


@dataclass(frozen=True)
class Reflection(Fill):
    """The picture itself, mirrored at its edges: for corners only."""

    def background(self, images: Images, *, rng: Rng | None = None) -> Images:
        """Not offered: a part within the picture has no edge of the frame to be mirrored at."""
        raise NotApplicableError("reflection fills corners, not hidden parts: take 'mean', 'blur' or 'other'")

    def around(self, images: Images, grid: Points, *, rng: Rng | None = None) -> Images:
        """The plane tiled with mirrored pictures, posed."""
        return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


@dataclass(frozen=True)
class Noise(Fill):
    """Normal noise with the mean and the spread of the picture's own colours, within [0, 1]."""

    def background(self, images: Images, *, rng: Rng | None = None) -> Images:
        """Noise, drawn anew with every call."""
        drawn = torch.randn(images.shape, generator=_required(rng, self.name)).to(images)
        spread, mean = torch.std_mean(images, dim=(-2, -1), keepdim=True, correction=0)
        return (mean + spread * drawn).clamp(0, 1)


@dataclass(frozen=True)
class Blur(Fill):
    """A blurred copy of the picture; sigma is a share of its shorter side."""

    sigma: float = 0.15

    def __post_init__(self) -> None:
        if not 0 < self.sigma <= 1:
            raise ConfigError(f"sigma: expected a share of the side in (0, 1], got {self.sigma}")

    def background(self, images: Images, *, rng: Rng | None = None) -> Images:
        """A Gaussian blur, its weights renormalised at the edges."""
        sigma = self.sigma * min(images.shape[-2:])
        down, across = (_gaussian(n, sigma, images) for n in images.shape[-2:])
        return down @ images @ across.T


@dataclass(frozen=True, eq=False)
class OneOf(Fill):
    """One of several fillings for each picture: that of the number in `chosen`."""

    fills: tuple[Fill, ...]
    chosen: Int64[Tensor, " batch"]

    def background(self, images: Images, *, rng: Rng | None = None) -> Images:
        """The filling of each picture; random ones draw as they would alone."""
        return self._pick([fill.background(images, rng=_again(rng)) for fill in self.fills])

    def around(self, images: Images, grid: Points, *, rng: Rng | None = None) -> Images:
        """The filling of each posed picture."""
        return self._pick([fill.around(images, grid, rng=_again(rng)) for fill in self.fills])

    def _pick(self, ways: Sequence[Images]) -> Images:
        found = ways[0]
        for number, way in enumerate(ways[1:], 1):
            found = torch.where((self.chosen == number)[:, None, None, None], way, found)
        return found


@dataclass(frozen=True)
class Made(Fill):
    """Whatever a function of the pictures makes of them."""

    make: Callable[[Images], Images]

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.make, "__name__", "made")

    def background(self, images: Images, *, rng: Rng | None = None) -> Images:
        """What the function returns."""
        return self.make(images)


FILLS: Mapping[str, Fill] = {
    "black": Black(),
    "mean": OwnMean(),
    "other": OtherPicture(),
    "reflection": Reflection(),
    "noise": Noise(),
    "blur": Blur(),
}

FillLike = str | Fill | float | Sequence[float] | Callable[[Images], Images]


def as_fill(fill: FillLike) -> Fill:
    """A filling from its name, a grey value, a colour, or a function of the pictures."""
    if isinstance(fill, Fill):
        return fill
    if isinstance(fill, str):
        if fill not in FILLS:
            raise ConfigError(f"no filling {fill!r}: {did_you_mean(fill, FILLS)}")
        return FILLS[fill]
    if callable(fill):
        return Made(fill)
    values = (float(fill),) if isinstance(fill, int | float) else tuple(float(value) for value in fill)
    return Black() if values == (0.0,) else Colour(values)


def _gaussian(n: int, sigma: float, like: Images) -> Tensor:
    """(n, n): how much each pixel of a line takes from each other, summing to 1."""
    places = torch.arange(n, dtype=torch.float64)
    weights = torch.exp(-(((places[:, None] - places) / sigma) ** 2) / 2)
    return (weights / weights.sum(1, keepdim=True)).to(like)


def _centre(images: Images, size: tuple[int, int]) -> Images:
    """The middle of larger pictures."""
    top, left = ((whole - part) // 2 for whole, part in zip(images.shape[-2:], size, strict=True))
    return images[..., top : top + size[0], left : left + size[1]]


def _again(rng: Rng | None) -> Rng | None:
    """The same stream from the same place."""
    return None if rng is None else rng.clone_state()


def _required(rng: Rng | None, name: str) -> Rng:
    if rng is None:
        raise ConfigError(f"the filling {name!r} is random: pass `rng=`")
    return rng
