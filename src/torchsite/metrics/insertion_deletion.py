"""Insertion and deletion: does the map name the pixels on which the prediction rests? (Petsiuk et al., 2018.)

    deletion(q)  = mean p_c of x with its q most important pixels blanked       area: lower is better
    insertion(q) = mean p_c of a blank picture given the q most important of x  area: higher is better

The class c is the caller's, by custom the one predicted on x; p is the softmax; no transform is involved.
Blanked pixels show a filling: black and a blurred copy by default, since the filling decides which method
comes first; any of FILLS, a colour or a function will do. Pictures half blanked are unlike any the model has
seen, so small differences in area say nothing about maps.
"""

import abc
from typing import NamedTuple

import torch

from torchsite.metrics.estimate import Estimate, ratio
from torchsite.metrics.measure import Batch, Passes, Statistics, Sums
from torchsite.metrics.ranking import (
    Order,
    RankedCurve,
    RankedMeasure,
    blanked,
    pixel_counts,
    ranked_curve,
)
from torchsite.shapes import Images


class PerturbationResult(NamedTuple):
    """The probability of the explained class against the fraction of pixels inserted or deleted.

    The figures are those of the first filling; `fills` has those of each.
    """

    fractions: list[float]
    curve: list[Estimate]
    area: Estimate
    random_curve: list[Estimate]
    random_area: Estimate
    gain: Estimate
    fills: dict[str, RankedCurve]


class _Perturbation(RankedMeasure):
    """What insertion and deletion share: a curve of probabilities along a ranking, and along a random one."""

    headline = ("fills.*.area", "fills.*.random_area")
    n_scores = 2

    @staticmethod
    @abc.abstractmethod
    def _perturbed(images: Images, order: Order, n: int, background: Images) -> Images:
        """The pictures after `n` pixels were put back or blanked, the most important (the last) first."""

    def passes(self) -> Passes:
        """One map; by its order and at random, each filling and fraction."""
        return Passes(1, 2 * len(self.fills) * len(self.fractions))

    def _scores(self, batch: Batch, order: Order, background: Images) -> Statistics:
        """Ones, and the probabilities of the explained class: (batch, 2, fractions)."""
        columns = []
        for n in pixel_counts(self.fractions, order.shape[1]):
            logits = self.explainer.logits(self._perturbed(batch.images, order, n, background))
            columns.append(logits.double().softmax(1).gather(1, batch.classes[:, None])[:, 0])
        probabilities = torch.stack(columns, dim=1)
        return torch.stack([torch.ones_like(probabilities), probabilities], dim=1)

    def _compute(self, sums: Sums) -> PerturbationResult:
        fills = self._by_fill(self._curve, sums)
        first: RankedCurve = fills[self.fills[0].name]
        return PerturbationResult(list(self.fractions), *first, fills=fills)

    def _curve(self, sums: Sums) -> RankedCurve:
        n, probability = sums.unbind(2)
        return ranked_curve(ratio(probability, n), self.fractions)


class Deletion(_Perturbation):
    """The probability while the most important pixels are blanked; lower is better."""

    higher_is_better = False

    @staticmethod
    def _perturbed(images: Images, order: Order, n: int, background: Images) -> Images:
        return blanked(images, order.flip(1), n, background)


class Insertion(_Perturbation):
    """The probability while the most important pixels are put back; higher is better."""

    @staticmethod
    def _perturbed(images: Images, order: Order, n: int, background: Images) -> Images:
        return blanked(images, order, order.shape[1] - n, background)
