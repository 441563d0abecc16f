"""One-map share: how much of all maps is one and the same map?

    share = n · |mean over x of I(x)|² / Σ_x |I(x)|²

the share of the energy of all maps that their mean map explains. A template, drawn for every picture, has 1;
n unrelated maps of mean zero have 1/n, given beside it. Maps that are never negative have something in common
already: independent uniform noise has 3/4. So low is a good sign, and high is none for a method of one sign.

Maps of zeros have no share (NaN). Maps larger than 32 × 32 are averaged down to that, which bounds the state.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F

from torchsite.metrics.estimate import Estimate, estimate, ratio
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums
from torchsite.shapes import Heatmaps

SIDE = 32


class OneMapShareResult(NamedTuple):
    """The share of the mean map, and what as many unrelated maps would have."""

    share: Estimate
    unrelated: float


def shrunk(heatmaps: Heatmaps, side: int = SIDE) -> Heatmaps:
    """Maps in float64 on a canvas of `side` × `side`: averaged down where larger, padded where smaller."""
    rows, cols = (min(n, side) for n in heatmaps.shape[-2:])
    small = F.adaptive_avg_pool2d(heatmaps.double()[:, None], (rows, cols))[:, 0]
    return F.pad(small, (0, side - cols, 0, side - rows))


class OneMapShare(Measure):
    """The share of the energy of all maps that their mean explains; 1 is a template."""

    higher_is_better = False
    headline = ("share", "unrelated")
    shape = (2 + SIDE * SIDE,)

    def passes(self) -> Passes:
        """The picture as it is."""
        return Passes(1, 0)

    def _update(self, batch: Batch) -> Statistics:
        maps = shrunk(self.explainer(batch.images, batch.classes)).flatten(1)
        energy = maps.square().sum(1, keepdim=True)
        return torch.cat([torch.ones_like(energy), energy, maps], dim=1)

    def _compute(self, sums: Sums) -> OneMapShareResult:
        n, energy, total = sums[:, 0], sums[:, 1], sums[:, 2:].square().sum(1)
        share, unrelated = ratio(total, n * energy), ratio(torch.ones_like(n), n)
        # A resample shows pictures twice, which alone would raise its share by (1 - share) / n.
        resampled = ratio(share[1:] - unrelated[1:], 1 - unrelated[1:])
        return OneMapShareResult(estimate(torch.cat([share[:1], resampled])), float(unrelated[0]))
