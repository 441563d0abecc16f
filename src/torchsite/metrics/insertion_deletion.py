"""Insertion and deletion: does the map name the pixels on which the prediction rests? (Petsiuk et al., 2018.)

    deletion(q)  = mean p_c of x with its q most important pixels blanked       area: lower is better
    insertion(q) = mean p_c of a blank picture given the q most important of x  area: higher is better

The class c is the caller's, by custom the one predicted on x; p is the softmax; no transform is involved.
Blank pixels take the value `fill`: 0 by default, a value per channel, or a function such as a blur. Pictures
half blanked are unlike any the model has seen, so small differences in area say nothing about maps.
"""

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from torchsite.metrics.estimate import Estimate, ratio
from torchsite.metrics.measure import Batch, Measure, Statistics, Sums
from torchsite.metrics.ranking import (
    FRACTIONS,
    Fill,
    Order,
    background_of,
    blanked,
    check_fractions,
    least_important_first,
    pixel_counts,
    random_order,
    ranked_curve,
)
from torchsite.shapes import Images


class PerturbationResult(NamedTuple):
    """The probability of the explained class against the fraction of pixels inserted or deleted."""

    fractions: list[float]
    curve: list[Estimate]
    area: Estimate
    random_curve: list[Estimate]
    random_area: Estimate
    gain: Estimate


class _Perturbation(Measure):
    """What insertion and deletion share: a curve of probabilities along a ranking, and along a random one."""

    headline = ("area", "random_area")

    def __init__(
        self,
        explain: Any,
        model: Any = None,
        *,
        fractions: Sequence[float] = FRACTIONS,
        fill: Fill = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(explain, model, **options)
        self.explainer.require_model()
        self.fractions, self.fill = check_fractions(fractions), fill
        self._add_sums(2, 2, len(self.fractions))

    @staticmethod
    @abc.abstractmethod
    def _perturbed(images: Images, order: Order, n: int, background: Images) -> Images:
        """The pictures after `n` pixels were put back or blanked, the most important (the last) first."""

    def _update(self, batch: Batch) -> Statistics:
        heatmaps = self.explainer(batch.images, batch.classes)
        by_map = least_important_first(heatmaps, batch.indices, self.poses.seed)
        at_random = random_order(batch.indices, heatmaps[0].numel(), self.poses.seed).to(by_map.device)
        return torch.stack([self._probabilities(batch, order) for order in (by_map, at_random)], dim=1)

    def _probabilities(self, batch: Batch, order: Order) -> Statistics:
        """Ones, and the probabilities of the explained class: (batch, 2, fractions)."""
        background = background_of(batch.images, self.fill)
        columns = []
        for n in pixel_counts(self.fractions, order.shape[1]):
            logits = self.explainer.logits(self._perturbed(batch.images, order, n, background))
            columns.append(logits.double().softmax(1).gather(1, batch.classes[:, None])[:, 0])
        probabilities = torch.stack(columns, dim=1)
        return torch.stack([torch.ones_like(probabilities), probabilities], dim=1)

    def _compute(self, sums: Sums) -> PerturbationResult:
        n, probability = sums.unbind(2)
        curves = ranked_curve(ratio(probability, n), self.fractions)
        return PerturbationResult(list(self.fractions), *curves)


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
