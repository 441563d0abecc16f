"""Mask-k: blank the least important pixels, transform, classify (section 4.2 of the paper).

    x̃_k = x with the k pixels of smallest I(x) blanked;     accuracy(k) = mean 1[argmax f(T_β x̃_k) = y]
    log-odds(k) = mean log(p_y / (1 - p_y)) of f(T_β x̃_k)

The ranking is made on the untransformed picture, for the class the caller explains (by custom the predicted
one); blanking comes before the transform, as in the paper. The later a curve drops, the better. Blanked
pixels take the value `fill`: 0 by default, or the data set's mean. Beside it stands a random ranking.
"""

from typing import NamedTuple

import torch

from torchsite.metrics.estimate import ratio
from torchsite.metrics.measure import Batch, Statistics, Sums
from torchsite.metrics.ranked import RankedMeasure
from torchsite.metrics.ranking import (
    Order,
    RankedCurve,
    background_of,
    blanked,
    log_odds,
    pixel_counts,
    ranked_curve,
)


class MaskKResult(NamedTuple):
    """Accuracy and log-odds of the true class against the fraction of pixels blanked."""

    fractions: list[float]
    accuracy: RankedCurve
    log_odds: RankedCurve


class MaskK(RankedMeasure):
    """Accuracy and log-odds after blanking the least important pixels and transforming."""

    headline = ("accuracy.area", "accuracy.random_area", "log_odds.area", "log_odds.random_area")
    n_scores = 3

    def _scores(self, batch: Batch, order: Order) -> Statistics:
        """Ones, right answers and log-odds of each image: (batch, 3, fractions)."""
        background = background_of(batch.images, self.fill)
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
        n, right, odds = sums.unbind(2)
        accuracy, log_odds_mean = ratio(right, n), ratio(odds, n)
        curves = (ranked_curve(accuracy, self.fractions), ranked_curve(log_odds_mean, self.fractions))
        return MaskKResult(list(self.fractions), *curves)
