"""Prediction equivariance: does the *prediction* survive the transform?

    share      = mean over x and β of 1[argmax f(T_β x) = argmax f(x)]
    floor      = mean over x ≠ x′ and β of 1[argmax f(T_β x) = argmax f(x′)]
    calibrated = (share - floor) / (1 - floor)

True labels play no part. A model that always answers the same has share 1, floor 1 and hence calibrated 0.
It bounds what self-consistency can mean: where the prediction changes, the explanation of the old class is
the explanation of a class that the model has dropped.
"""

from typing import Any, NamedTuple

import torch

from torchsite.metrics.estimate import Estimate, estimates, ratio
from torchsite.metrics.grouping import N_BINS, Curve, Grouping, calibrated, partner_offset
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums


class Survival(NamedTuple):
    """The share of predictions that survive, what chance would give, and the way from one to the other."""

    share: Estimate
    floor: Estimate
    calibrated: Estimate


class PredictionEquivarianceResult(NamedTuple):
    """The figures overall, against angle, shift and scale, and for each class predicted on x."""

    share: Estimate
    floor: Estimate
    calibrated: Estimate
    curves: dict[str, Curve]
    per_class: list[Survival]


class PredictionEquivariance(Measure):
    """The share of predictions that stay the same under the transform."""

    of_model = True
    shares_passes = True
    headline = ("share", "calibrated")

    def __init__(self, explain: Any, model: Any = None, *, n_bins: int = N_BINS, **options: Any) -> None:
        super().__init__(explain, model, **options)
        self.explainer.require_model()
        self.grouping = Grouping.of_family(self.poses.family, self.n_classes, n_bins)
        self._add_sums(len(self.grouping), 4)

    def passes(self) -> Passes:
        """The picture as it is and in each pose."""
        return Passes(0, 1 + self.poses.n)

    def _update(self, batch: Batch) -> Statistics:
        before = self.explainer.predict(batch.images)
        statistics = torch.zeros(len(batch), len(self.grouping), 4, dtype=torch.float64)
        for number, transform in enumerate(self._transforms(batch)):
            after = self.explainer.predict(transform(batch.images))
            offset = partner_offset(number, self.poses.n, len(batch))
            paired = torch.full_like(after, float(offset > 0), dtype=torch.float64)
            by_chance = (after == before.roll(-offset)).double() * paired
            columns = [torch.ones_like(paired), (after == before).double(), paired, by_chance]
            groups = self.grouping.membership(before, transform)
            statistics += groups[:, :, None] * torch.stack(columns, dim=1).cpu()[:, None, :] / self.poses.n
        return statistics

    def _compute(self, sums: Sums) -> PredictionEquivarianceResult:
        n, same, n_paired, by_chance = sums.unbind(-1)
        share, floor = ratio(same, n), ratio(by_chance, n_paired)
        columns = [estimates(rows) for rows in (share, floor, calibrated(share, floor))]
        survivals = [Survival(*three) for three in zip(*columns, strict=True)]
        total, per_class, curves = self.grouping.split(survivals)
        figures: Survival = total
        return PredictionEquivarianceResult(*figures, curves=curves, per_class=per_class)
