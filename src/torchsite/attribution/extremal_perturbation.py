"""The smooth mask of a given area that keeps the class logit highest when all else is blurred.

    m_a = argmax_m  logit_y(m ⊗ x) - λ · ‖vecsort(m) - r_a‖² / |m|,     heatmap = mean over areas of m_a

r_a is 0 on a share 1 - a of the pixels and 1 on the rest: the penalty asks for a binary mask of area a. Its
weight λ grows geometrically from the first entry of `penalty` to the last, so that the region is found before
it is fixed: a penalty that starts at 300 outweighs the logit at once and fixes what the first gradient said.

- m ⊗ x blurs each pixel by a Gaussian of σ(1 - m(u)): linear interpolation in a pyramid of `n_levels` blurs.
- m is smooth by construction: the max-convolution of a coarse grid g of `cells` × `cells` values in [0, 1],
  m(u) = smax_v k(u - v)·g(v), with smax f = Σ f·e^{f/T} / Σ e^{f/T}, T = 1/20, and a Gaussian k of width
  `smoothness`. A Gaussian separates, so the maximum is taken along columns, then along rows.
- The grid follows gradient ascent with momentum. The penalty's gradient is 2(m(u) - 1[u among the a·|m|
  highest])/|m|, the derivative of the sorted distance; of equal values those count as higher that the logit
  would raise, so that a uniform start prefers no corner.

The masks of a whole batch, all areas included, are optimised at once. The objective is a sum over pictures
and the ascent is elementwise, so no picture affects another.

Fong, Patrick, Vedaldi: Understanding deep networks via extremal perturbations and smooth masks, ICCV 2019.
"""

from collections.abc import Sequence
from math import log10
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchsite.attribution.checks import at_least, fraction
from torchsite.attribution.contract import Attribution
from torchsite.errors import ConfigError
from torchsite.shapes import Heatmaps, Images, Labels

TEMPERATURE = 1 / 20


class ExtremalPerturbation(Attribution):
    """Which part of the picture is enough for the class; values in [0, 1].

    `smoothness` and `blur` (the widest of the pyramid) are fractions of the picture's side.
    """

    passes = 180
    budget: ClassVar = {"n_steps": 60}

    def __init__(
        self,
        model: nn.Module,
        *,
        areas: Sequence[float] = (0.1,),
        n_steps: int = 200,
        cells: int = 16,
        smoothness: float = 0.09,
        blur: float = 0.09,
        n_levels: int = 8,
        penalty: tuple[float, float] = (1.0, 1000.0),
        learning_rate: float = 0.1,
        momentum: float = 0.9,
        internal_batch_size: int = 32,
    ) -> None:
        super().__init__(model, internal_batch_size=internal_batch_size)
        if not areas:
            raise ConfigError("areas: expected at least one fraction of the picture, got none")
        for area in areas:
            fraction(areas=area)
        fraction(smoothness=smoothness, blur=blur)
        at_least(1, n_steps=n_steps, cells=cells)
        at_least(2, n_levels=n_levels)
        at_least(1e-12, first_penalty=penalty[0], last_penalty=penalty[1], learning_rate=learning_rate)
        self.areas = tuple(areas)
        self.n_steps = n_steps
        self.cells = cells
        self.smoothness = smoothness
        self.blur = blur
        self.n_levels = n_levels
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.momentum = momentum

    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        return self._in_batches(self._optimised, images, classes)

    def _optimised(self, images: Images, classes: Labels) -> Heatmaps:
        n_areas = len(self.areas)
        parts = max(1, self.internal_batch_size // n_areas)
        grown = [self._masks(*part) for part in zip(images.split(parts), classes.split(parts), strict=True)]
        return torch.cat([masks.unflatten(0, (n_areas, -1)).mean(0) for masks in grown])

    def _masks(self, images: Images, classes: Labels) -> Heatmaps:
        """One mask per area and picture, areas outermost, all optimised together."""
        n_areas, (rows, cols) = len(self.areas), images.shape[-2:]
        logits = self._logits(classes)
        pyramid = blurred(images, self.blur * min(rows, cols), self.n_levels).repeat(1, n_areas, 1, 1, 1)
        asked = classes.repeat(n_areas)[:, None]
        n_kept = [max(1, round(area * rows * cols)) for area in self.areas for _ in images]
        smooth = MaxConvolution(self.cells, (rows, cols), self.smoothness, images)
        grid = images.new_full((len(asked), self.cells, self.cells), 0.5)
        velocity = torch.zeros_like(grid)
        first, last = map(log10, self.penalty)
        for weight in torch.logspace(first, last, self.n_steps).tolist():
            grid.requires_grad_()
            masks = smooth(grid)
            shown = masks.detach().requires_grad_()
            score = logits(perturbed(pyramid, shown)).gather(1, asked).sum()
            (wish,) = torch.autograd.grad(score, shown)
            excess = 2 * (shown.detach() - highest(shown.detach(), wish, n_kept)) / (rows * cols)
            (slope,) = torch.autograd.grad(masks, grid, wish - weight * excess)
            velocity = self.momentum * velocity + slope
            grid = (grid.detach() + self.learning_rate * velocity).clamp(0, 1)
        return smooth(grid)


class MaxConvolution:
    """Smooth masks from coarse grids: smax_v k(u - v)·g(v), along columns, then along rows."""

    def __init__(self, cells: int, size: tuple[int, int], smoothness: float, like: Tensor) -> None:
        width = smoothness * min(size)
        self._kernels = [_gaussian_of_distance(cells, side, width).to(like) for side in size]

    def __call__(self, grid: Tensor) -> Heatmaps:
        """Grids (batch, cells, cells) as masks of the picture's size."""
        across_rows, across_cols = self._kernels
        wide = smooth_maximum(grid[:, :, None, :] * across_cols)
        return smooth_maximum(wide.transpose(1, 2)[:, None] * across_rows[:, None, :])


def _gaussian_of_distance(cells: int, side: int, width: float) -> Tensor:
    """k(u - v) for every pixel u and the centre v of every cell, (side, cells)."""
    pixels = torch.arange(side, dtype=torch.float64) + 0.5
    centres = (torch.arange(cells, dtype=torch.float64) + 0.5) * side / cells
    return torch.exp(-((pixels[:, None] - centres) ** 2) / (2 * width**2))


def smooth_maximum(values: Tensor) -> Tensor:
    """Σ f·e^{f/T} / Σ e^{f/T} over the last axis: a differentiable maximum, exact on constants."""
    return ((values / TEMPERATURE).softmax(-1) * values).sum(-1)


def blurred(images: Images, widest: float, n_levels: int) -> Tensor:
    """The picture under `n_levels` Gaussian blurs, from none to the widest, (levels, batch, …)."""
    widths = torch.linspace(0, widest, n_levels, dtype=torch.float64)[1:].tolist()
    return torch.stack([images, *(_blur(images, width) for width in widths)])


def _blur(images: Images, width: float) -> Images:
    radius = max(1, round(3 * width))
    offsets = torch.arange(-radius, radius + 1, dtype=torch.float64)
    profile = torch.exp(-(offsets**2) / (2 * width**2))
    profile = (profile / profile.sum()).to(images)
    single = F.pad(images, (radius,) * 4, mode="replicate").flatten(0, 1)[:, None]
    single = F.conv2d(F.conv2d(single, profile[None, None, None]), profile[None, None, :, None])
    return single.view_as(images)


def perturbed(pyramid: Tensor, masks: Heatmaps) -> Images:
    """m ⊗ x: each pixel at the blur level (1 - m)·(levels - 1), between two levels linearly."""
    level = (1 - masks) * (len(pyramid) - 1)
    lower = level.detach().floor().clamp(0, len(pyramid) - 2)
    index = lower.long()[None, :, None].expand(1, *pyramid.shape[1:])
    sharp, soft = pyramid.gather(0, index)[0], pyramid.gather(0, index + 1)[0]
    return torch.lerp(sharp, soft, (level - lower)[:, None])


def highest(masks: Heatmaps, wish: Heatmaps, n_kept: Sequence[int]) -> Heatmaps:
    """1 at the `n_kept` highest values of each mask, 0 elsewhere; ties go to where the wish is greater."""
    scale = wish.abs().amax((1, 2), keepdim=True).clamp(min=1e-30)
    keys = (masks + 1e-5 * wish / scale).flatten(1)
    ranks = keys.argsort(1, descending=True)
    counts = torch.tensor(n_kept, device=masks.device)[:, None]
    kept = (torch.arange(ranks.shape[1], device=masks.device) < counts).to(masks.dtype)
    return torch.zeros_like(keys).scatter(1, ranks, kept).view_as(masks)
