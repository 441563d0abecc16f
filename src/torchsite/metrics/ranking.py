"""Rank pixels by importance and blank them: the part that mask-k, insertion and deletion share.

Equal pixels are ranked at random (from the seed and the picture's index), not from the upper left: maps with
large flat parts, such as Grad-CAM's zeros, would otherwise be credited with the order of the pixels. Every
curve comes with that of a random ranking over the same pictures and poses, its floor: what a map without
information gets. Fails without a model, and for fractions that do not rise.

What blanked pixels show decides which method comes out first, so every figure is given for two fillings or
more. The figures without a filling's name are those of the first: black, the paper's.
"""

import abc
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from torchsite.errors import ConfigError
from torchsite.metrics.estimate import Estimate, Figures, estimate, estimates
from torchsite.metrics.measure import Batch, Measure, Statistics, Sums
from torchsite.randomness import make_rng
from torchsite.shapes import Heatmaps, Images, Labels, Logits, Scores
from torchsite.transforms import FillLike, as_fill

Order = Int64[Tensor, "batch pixels"]

FRACTIONS = tuple(step / 10 for step in range(11))
FILLINGS = ("black", "blur")


class RankedCurve(NamedTuple):
    """A score against the fraction of pixels, its mean height, and both for a random ranking."""

    curve: list[Estimate]
    area: Estimate
    random_curve: list[Estimate]
    random_area: Estimate
    gain: Estimate


def least_important_first(heatmaps: Heatmaps, indices: Tensor, seed: int) -> Order:
    """The numbers of the pixels from the least to the most important, ties in random order."""
    shuffled = random_order(indices, heatmaps[0].numel(), seed, "ties").to(heatmaps.device)
    ascending = heatmaps.flatten(1).gather(1, shuffled).argsort(dim=1, stable=True)
    return shuffled.gather(1, ascending)


def random_order(indices: Tensor, n_pixels: int, seed: int, stream: str = "random ranking") -> Order:
    """A permutation of the pixels for each picture."""
    orders = [torch.randperm(n_pixels, generator=make_rng(seed, stream, i)) for i in indices.tolist()]
    return torch.stack(orders) if orders else torch.zeros(0, n_pixels, dtype=torch.int64)


def blanked(images: Images, order: Order, n: int, background: Images) -> Images:
    """The images with the first `n` pixels of the order replaced by the background."""
    chosen = torch.zeros_like(order, dtype=torch.bool).scatter(1, order[:, :n], True)
    return torch.where(chosen.reshape(len(images), 1, *images.shape[-2:]), background, images)


def pixel_counts(fractions: Sequence[float], n_pixels: int) -> list[int]:
    """How many pixels each fraction is."""
    return [round(fraction * n_pixels) for fraction in fractions]


def log_odds(logits: Logits, classes: Labels) -> Scores:
    """log(p / (1 - p)) of the given class, from logits: no probability is ever rounded to 0 or 1."""
    own = torch.nn.functional.one_hot(classes, logits.shape[1]).bool()
    others = logits.double().masked_fill(own, -torch.inf).logsumexp(dim=1)
    return logits.double()[own] - others


def ranked_curve(rows: Float[Tensor, "resamples 2 fractions"], fractions: Sequence[float]) -> RankedCurve:
    """The curves by map and at random, their areas, and the gain in area of the one over the other."""
    by_map, at_random = rows.unbind(1)
    area, random_area = _area(by_map, fractions), _area(at_random, fractions)
    gain = estimate(area - random_area)
    return RankedCurve(estimates(by_map), estimate(area), estimates(at_random), estimate(random_area), gain)


def _area(rows: Float[Tensor, "resamples fractions"], fractions: Sequence[float]) -> Tensor:
    """The mean height under the curve, by the trapezoidal rule."""
    at = torch.tensor(fractions, dtype=rows.dtype, device=rows.device)
    return torch.trapezoid(rows, at, dim=1) / (at[-1] - at[0])


class RankedMeasure(Measure):
    """Scores of pictures with ever more pixels blanked, in the order of the map and in another.

    The other is a random one, or the map's reversed, which then comes first, the least important pixels last.
    """

    needs_model = True
    n_scores: ClassVar[int]
    against_random: ClassVar[bool] = True

    def __init__(
        self,
        explain: Any,
        model: Any = None,
        *,
        fractions: Sequence[float] = FRACTIONS,
        fills: Sequence[FillLike] = FILLINGS,
        **options: Any,
    ) -> None:
        super().__init__(explain, model, **options)
        rising = all(a < b for a, b in pairwise(fractions))
        if len(fractions) < 2 or not rising or fractions[0] < 0 or fractions[-1] > 1:
            raise ConfigError(f"fractions: expected two or more rising values in [0, 1], got {fractions}")
        if not fills:
            raise ConfigError("fills: expected one filling or more, got none")
        self.fractions, self.fills = tuple(fractions), tuple(as_fill(fill) for fill in fills)
        self._add_sums(len(self.fills), 2, self.n_scores, len(self.fractions))

    @abc.abstractmethod
    def _scores(self, batch: Batch, order: Order, background: Images) -> Statistics:
        """Ones, then what is measured, of each picture and fraction: (batch, n_scores, fractions)."""

    def _update(self, batch: Batch) -> Statistics:
        heatmaps = self.explainer(batch.images, batch.classes)
        by_map = least_important_first(heatmaps, batch.indices, self.poses.seed)
        orders = (by_map.flip(1), by_map)
        if self.against_random:
            at_random = random_order(batch.indices, heatmaps[0].numel(), self.poses.seed)
            orders = (by_map, at_random.to(by_map.device))
        found = []
        for fill in self.fills:
            background = fill.background(batch.images, rng=self._rng(batch, fill.name))
            scores = [self._scores(batch, order, background) for order in orders]
            found.append(torch.stack(scores, dim=1))
        return torch.stack(found, dim=1)

    def _by_fill(self, figures: Callable[[Sums], Figures], sums: Sums) -> dict[str, Figures]:
        """The figures of every filling, by its name."""
        names = [fill.name for fill in self.fills]
        return {name: figures(part) for name, part in zip(names, sums.unbind(1), strict=True)}
