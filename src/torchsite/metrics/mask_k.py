"""Mask-k: blank the least important pixels, transform, classify (section 4.2 of the paper).

    x̃_k = x with the k pixels of smallest I(x) blanked;     accuracy(k) = mean 1[argmax f(T_β x̃_k) = y]
    log-odds(k) = mean log(p_y / (1 - p_y)) of f(T_β x̃_k)

The ranking is made on the untransformed picture, for the class the caller explains (by custom the predicted
one); blanking comes before the transform, as in the paper. The later a curve drops, the better. Blanked
pixels show a filling: black and a blurred copy by default. Beside it stands a random ranking, which is what a
map without information gets; a smooth map gains over it without knowing anything, and where the background is
black, blanking it with black changes nothing. Fails without a model.
"""

from typing import NamedTuple

import torch

from torchsite.metrics.estimate import ratio
from torchsite.metrics.measure import Batch, Passes, Statistics, Sums
from torchsite.metrics.ranking import (
    Order,
    RankedCurve,
    RankedMeasure,
    blanked,
    log_odds,
    pixel_counts,
    ranked_curve,
)
from torchsite.shapes import Images


class MaskCurves(NamedTuple):
    """Accuracy and log-odds of the true class under one filling."""

    accuracy: RankedCurve
    log_odds: RankedCurve


class MaskKResult(NamedTuple):
    """Accuracy and log-odds of the true class against the fraction of pixels blanked.

    The figures are those of the first filling; `fills` has those of each.
    """

    fractions: list[float]
    accuracy: RankedCurve
    log_odds: RankedCurve
    fills: dict[str, MaskCurves]


class MaskK(RankedMeasure):
    """Accuracy and log-odds after blanking the least important pixels and transforming."""

    headline = (
        "fills.*.accuracy.area",
        "fills.*.accuracy.random_area",
        "fills.*.log_odds.area",
        "fills.*.log_odds.random_area",
    )
    n_scores = 3

    def passes(self) -> Passes:
        """One map; by its order and at random, each filling and fraction in each pose."""
        return Passes(1, 2 * len(self.fills) * len(self.fractions) * self.poses.n)

    def _scores(self, batch: Batch, order: Order, background: Images) -> Statistics:
        """Ones, right answers and log-odds of each image: (batch, 3, fractions)."""
        transforms = self._transforms(batch)
        scores = torch.zeros(len(batch), 3, len(self.fractions), dtype=torch.float64)
        for k, n in enumerate(pixel_counts(self.fractions, order.shape[1])):
            masked = blanked(batch.images, order, n, background)
            for transform in transforms:
                logits = self.explainer.logits(transform(masked)).cpu()
                labels = batch.labels.cpu()
                right = (logits.argmax(1) == labels).double()
                scores[:, :, k] += torch.stack([torch.ones_like(right), right, log_odds(logits, labels)], 1)
        return scores / len(transforms)

    def _compute(self, sums: Sums) -> MaskKResult:
        fills = self._by_fill(self._curves, sums)
        return MaskKResult(list(self.fractions), *fills[self.fills[0].name], fills=fills)

    def _curves(self, sums: Sums) -> MaskCurves:
        n, right, odds = sums.unbind(2)
        return MaskCurves(*(ranked_curve(ratio(score, n), self.fractions) for score in (right, odds)))
