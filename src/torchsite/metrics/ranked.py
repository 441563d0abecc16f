"""What the measures along a ranking of pixels share: the ranking by the map, and a random one beside it.

What blanked pixels show decides which method comes out first, so every figure is given for two fillings or
more. The figures without a filling's name are those of the first: black, the paper's. `fill=` asks for one.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import torch

from torchsite.errors import ConfigError
from torchsite.metrics.measure import Batch, Measure, Statistics, Sums
from torchsite.metrics.ranking import (
    FRACTIONS,
    Order,
    check_fractions,
    least_important_first,
    random_order,
)
from torchsite.shapes import Images
from torchsite.transforms import FillLike, as_fill

FILLINGS = ("black", "blur")
Figures = TypeVar("Figures")


class RankedMeasure(Measure):
    """Scores of pictures with ever more pixels blanked, in the order of the map and in a random one."""

    n_scores: ClassVar[int]

    def __init__(
        self,
        explain: Any,
        model: Any = None,
        *,
        fractions: Sequence[float] = FRACTIONS,
        fills: Sequence[FillLike] = FILLINGS,
        fill: FillLike | None = None,
        **options: Any,
    ) -> None:
        super().__init__(explain, model, **options)
        self.explainer.require_model()
        fills = fills if fill is None else (fill,)
        if not fills:
            raise ConfigError("fills: expected one filling or more, got none")
        self.fractions, self.fills = check_fractions(fractions), tuple(as_fill(fill) for fill in fills)
        self._add_sums(len(self.fills), 2, self.n_scores, len(self.fractions))

    @abc.abstractmethod
    def _scores(self, batch: Batch, order: Order, background: Images) -> Statistics:
        """Ones, then what is measured, of each picture and fraction: (batch, n_scores, fractions)."""

    def _update(self, batch: Batch) -> Statistics:
        heatmaps = self.explainer(batch.images, batch.classes)
        by_map = least_important_first(heatmaps, batch.indices, self.poses.seed)
        at_random = random_order(batch.indices, heatmaps[0].numel(), self.poses.seed).to(by_map.device)
        found = []
        for fill in self.fills:
            background = fill.background(batch.images, rng=self._rng(batch, fill.name))
            scores = [self._scores(batch, order, background) for order in (by_map, at_random)]
            found.append(torch.stack(scores, dim=1))
        return torch.stack(found, dim=1)

    def _by_fill(self, figures: Callable[[Sums], Figures], sums: Sums) -> dict[str, Figures]:
        """The figures of every filling, by its name."""
        names = [fill.name for fill in self.fills]
        return {name: figures(part) for name, part in zip(names, sums.unbind(1), strict=True)}
