"""What the measures along a ranking of pixels share: the ranking by the map, and a random one beside it."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from torchsite.metrics.measure import Batch, Measure, Statistics
from torchsite.metrics.ranking import (
    FRACTIONS,
    Fill,
    Order,
    check_fractions,
    least_important_first,
    random_order,
)


class RankedMeasure(Measure):
    """Scores of pictures with ever more pixels blanked, in the order of the map and in a random one."""

    n_scores: ClassVar[int]

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
        self._add_sums(2, self.n_scores, len(self.fractions))

    @abc.abstractmethod
    def _scores(self, batch: Batch, order: Order) -> Statistics:
        """Ones, then what is measured, of each picture and fraction: (batch, n_scores, fractions)."""

    def _update(self, batch: Batch) -> Statistics:
        heatmaps = self.explainer(batch.images, batch.classes)
        by_map = least_important_first(heatmaps, batch.indices, self.poses.seed)
        at_random = random_order(batch.indices, heatmaps[0].numel(), self.poses.seed).to(by_map.device)
        return torch.stack([self._scores(batch, order) for order in (by_map, at_random)], dim=1)
