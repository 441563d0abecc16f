"""Accuracy, on pictures as they are and on pictures transformed.

    accuracy = mean 1[argmax f(x) = y],   transformed accuracy = mean over β of 1[argmax f(T_β x) = y]

It measures the model, not the explainer: an explanation of a poor model may be perfect.
"""

from typing import Any, NamedTuple

import torch

from torchsite.metrics.estimate import Estimate, estimate, ratio
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums


class AccuracyResult(NamedTuple):
    """The share of right answers."""

    untransformed: Estimate
    transformed: Estimate


class Accuracy(Measure):
    """The share of pictures that the model puts into their class, untransformed and transformed."""

    of_model = True
    shares_passes = True
    headline = ("untransformed", "transformed")

    def __init__(self, explain: Any, model: Any = None, **options: Any) -> None:
        super().__init__(explain, model, **options)
        self.explainer.require_model()
        self._add_sums(3)

    def passes(self) -> Passes:
        """The picture as it is and in each pose."""
        return Passes(0, 1 + self.poses.n)

    def _update(self, batch: Batch) -> Statistics:
        right = self.explainer.predict(batch.images) == batch.labels
        moved = [
            self.explainer.predict(transform(batch.images)) == batch.labels
            for transform in self._transforms(batch)
        ]
        survived = torch.stack(moved).double().mean(0)
        return torch.stack([torch.ones_like(survived), right.double(), survived], dim=1)

    def _compute(self, sums: Sums) -> AccuracyResult:
        n, right, moved = sums.unbind(1)
        return AccuracyResult(estimate(ratio(right, n)), estimate(ratio(moved, n)))
