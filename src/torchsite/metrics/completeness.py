"""Completeness error: how far the heatmap's sum is from the logit that it explains.

    error(x) = |Σ_u I(x)_u - logit_c(x)| / max(1, |logit_c(x)|)

SITE's explanation is its prediction, so its error is rounding: below 1e-4 in float32. Gradient × input is
complete for networks without biases; Grad-CAM, RISE and the like are not meant to be, and their error only
shows that their scale is arbitrary. A map of zeros has error 1 wherever |logit| ≥ 1; the logit spread evenly
over all pixels has 0, though it has no information about places. Fails without a model.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchsite.metrics.estimate import Estimate, estimate, ratio
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums
from torchsite.shapes import Heatmaps, Scores


class CompletenessResult(NamedTuple):
    """The largest error, which a bound is about, and the mean."""

    worst: float
    mean: Estimate


def completeness_error(heatmaps: Heatmaps, explained_logits: Scores) -> Scores:
    """|Σ heatmap - logit| / max(1, |logit|) for each picture."""
    total, logits = heatmaps.double().flatten(1).sum(1), explained_logits.double()
    return (total - logits).abs() / logits.abs().clamp_min(1)


class Completeness(Measure):
    """The completeness error of the explained class, its worst case and its mean."""

    higher_is_better = False
    needs_model = shares_passes = True
    headline = ("worst",)
    shape = (2,)

    worst: Tensor

    def __init__(self, explain: Any, model: Any = None, **options: Any) -> None:
        super().__init__(explain, model, **options)
        self.add_state("worst", torch.tensor(-math.inf, dtype=torch.float64), dist_reduce_fx="max")

    def passes(self) -> Passes:
        """The picture as it is, and its logit."""
        return Passes(1, 1)

    def _update(self, batch: Batch) -> Statistics:
        logits = self.explainer.logits(batch.images).gather(1, batch.classes[:, None])[:, 0]
        errors = completeness_error(self.explainer(batch.images, batch.classes), logits)
        self.worst = torch.maximum(self.worst, errors.max().to(self.worst))
        return torch.stack([torch.ones_like(errors), errors], dim=1)

    def _compute(self, sums: Sums) -> CompletenessResult:
        n, total = sums.unbind(1)
        worst = float(self.worst) if float(n[0]) else math.nan
        return CompletenessResult(worst, estimate(ratio(total, n)))
