"""Accuracy, and whether the *prediction* survives the transform: measures of the model, not of the explainer.

    accuracy = mean 1[argmax f(x) = y],   transformed accuracy = mean over β of 1[argmax f(T_β x) = y]

    share      = mean over x and β of 1[argmax f(T_β x) = argmax f(x)]
    floor      = mean over x ≠ x′ and β of 1[argmax f(T_β x) = argmax f(x′)]
    calibrated = (share - floor) / (1 - floor)

An explanation of a poor model may be perfect. A model that always answers the same has the share of its class
as accuracy, and share 1, floor 1 and hence calibrated 0: true labels play no part in the survival, so a wrong
prediction may survive. It bounds what self-consistency can mean: where the prediction changes, the
explanation of the old class is the explanation of a class that the model has dropped. Both fail without a
model.
"""

from typing import Any, NamedTuple

import torch

from torchsite.metrics.estimate import Estimate, each_group, estimate, ratio
from torchsite.metrics.grouping import Curve, Grouping, calibrated
from torchsite.metrics.measure import Batch, Measure, Statistics, Sums


class AccuracyResult(NamedTuple):
    """The share of right answers."""

    untransformed: Estimate
    transformed: Estimate


class Accuracy(Measure):
    """The share of pictures that the model puts into their class, untransformed and transformed."""

    of_model = needs_model = shares_passes = True
    headline = ("untransformed", "transformed")
    shape = (3,)

    def _update(self, batch: Batch) -> Statistics:
        both = self._still_and_moved(batch, self._right)
        return torch.cat([torch.ones_like(both[:, :1]), both], dim=1)

    def _right(self, batch: Batch) -> Statistics:
        return (self.explainer.predict(batch.images) == batch.labels).double()

    def _compute(self, sums: Sums) -> AccuracyResult:
        n, right, moved = sums.unbind(1)
        return AccuracyResult(estimate(ratio(right, n)), estimate(ratio(moved, n)))


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

    of_model = needs_model = shares_passes = True
    headline = ("share", "calibrated")

    def __init__(self, explain: Any, model: Any = None, **options: Any) -> None:
        super().__init__(explain, model, **options)
        self.grouping = Grouping.of_family(self.poses.family, self.n_classes)
        self._add_sums(len(self.grouping), 4)

    def _update(self, batch: Batch) -> Statistics:
        before = self.explainer.predict(batch.images)
        scores = []
        for transform, offset in self._paired(batch):
            after = self.explainer.predict(transform(batch.images))
            counts = torch.ones(len(batch), dtype=torch.float64, device=before.device)
            paired = counts * (offset > 0)
            by_chance = (after == before.roll(-offset)) * paired
            columns = [counts, (after == before).double(), paired, by_chance]
            scores.append((transform, torch.stack(columns, dim=1)))
        return self.grouping.mean(before, scores)

    def _compute(self, sums: Sums) -> PredictionEquivarianceResult:
        n, same, n_paired, by_chance = sums.unbind(-1)
        share, floor = ratio(same, n), ratio(by_chance, n_paired)
        total, per_class, curves = self.grouping.split(
            each_group(Survival, share, floor, calibrated(share, floor))
        )
        return PredictionEquivarianceResult(*total, curves, per_class)
