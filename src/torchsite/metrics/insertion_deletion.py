"""Insertion, deletion and LeRF - MoRF: does the map name the pixels on which the prediction rests?

    deletion(q)  = mean p_c of x with its q most important pixels blanked       area: lower is better
    insertion(q) = mean p_c of a blank picture given the q most important of x  area: higher is better
    LeRF(q)      = mean p_c of x with its q least important pixels blanked
    LeRF - MoRF  = area of LeRF - area of deletion ("most relevant first")      higher is better

Insertion and deletion are those of Petsiuk et al. (2018), the difference that of TRACE (Wang and Wang, ICML
2024). The class c is the caller's, by custom the one predicted on x; p is the softmax; no transform is
involved. LeRF is insertion read backwards, so the difference is insertion's area less deletion's; found
together, both on the same pictures, it has an interval of its own.

A map without information gets the area of a random ranking, given beside insertion and deletion; of LeRF -
MoRF it gets 0. A *smooth* map without information gains over a random ranking, since it leaves connected
parts: read figures beside the row of the method `random` and of CONTROL_MAPS. Blanked pixels show a filling:
black and a blurred copy by default, since the filling decides which method comes first; any of FILLS, a
colour or a function will do. Pictures half blanked are unlike any the model has seen, so small differences in
area mean nothing. Fails without a model.
"""

import abc
from typing import ClassVar, NamedTuple

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


class BothOrders(NamedTuple):
    """The probability with the least and with the most relevant pixels first, and the areas' difference."""

    lerf_curve: list[Estimate]
    lerf_area: Estimate
    morf_curve: list[Estimate]
    morf_area: Estimate
    difference: Estimate


class LeRFMoRFResult(NamedTuple):
    """The difference under the first filling, and everything under each."""

    fractions: list[float]
    difference: Estimate
    fills: dict[str, BothOrders]


class _Perturbation(RankedMeasure):
    """A curve of probabilities along each of two rankings."""

    headline: ClassVar[tuple[str, ...]] = ("fills.*.area", "fills.*.random_area")
    n_scores = 2

    def passes(self) -> Passes:
        """One map; in both orders each filling and fraction."""
        return Passes(1, 2 * len(self.fills) * len(self.fractions))

    @staticmethod
    @abc.abstractmethod
    def _perturbed(images: Images, order: Order, n: int, background: Images) -> Images:
        """The pictures after `n` pixels were put back or blanked, the most important (the last) first."""

    def _scores(self, batch: Batch, order: Order, background: Images) -> Statistics:
        """Ones, and the probabilities of the explained class: (batch, 2, fractions)."""
        columns = []
        for n in pixel_counts(self.fractions, order.shape[1]):
            logits = self.explainer.logits(self._perturbed(batch.images, order, n, background))
            columns.append(logits.double().softmax(1).gather(1, batch.classes[:, None])[:, 0])
        probabilities = torch.stack(columns, dim=1)
        return torch.stack([torch.ones_like(probabilities), probabilities], dim=1)

    def _compute(self, sums: Sums) -> PerturbationResult | LeRFMoRFResult:
        fills = self._by_fill(self._curve, sums)
        return PerturbationResult(list(self.fractions), *fills[self.fills[0].name], fills=fills)

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


class LeRFMoRF(Deletion):
    """The area between deletion with the least and with the most relevant pixels first; higher is better."""

    higher_is_better = True
    headline = ("fills.*.difference",)
    against_random: ClassVar[bool] = False

    def _compute(self, sums: Sums) -> LeRFMoRFResult:
        fills = self._by_fill(lambda part: BothOrders(*self._curve(part)), sums)
        return LeRFMoRFResult(list(self.fractions), fills[self.fills[0].name].difference, fills)
