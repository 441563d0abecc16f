"""One-map share: how much of all maps is one and the same map?

    share = n · |mean over x of I(x)|² / Σ_x |I(x)|²

the share of the energy of all maps that their mean map explains. A template, drawn for every picture, has 1;
n unrelated maps of mean zero have 1/n, given beside it. Maps that are never negative have something in common
already: independent uniform noise has 3/4. So low is a good sign, and high is none for a method of one sign.

A template that is evidence for some classes and against others has mean zero. So there is also the share of
one *pattern*, whatever its sign and size:

    pattern = λ_max(G) / tr G,    G = Σ_x m(x) m(x)ᵀ,    m(x) = I(x) on 8 × 8 cells, less its mean, length 1

1 for a template with any sign; 1/63 for many unrelated maps; a half and more where things stand in the
middle.

Maps of zeros have no share, constant ones no pattern (NaN). Maps larger than 32 × 32 are averaged down to
that, which bounds the state.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.metrics.estimate import Estimate, estimate, ratio
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums
from torchsite.shapes import Heatmaps

SIDE, COARSE = 32, 8


class OneMapShareResult(NamedTuple):
    """The share of the mean map, what as many unrelated maps would have, and the share of one pattern."""

    share: Estimate
    unrelated: float
    pattern: Estimate


def shrunk(heatmaps: Heatmaps, side: int = SIDE) -> Heatmaps:
    """Maps in float64 on a canvas of `side` × `side`: averaged down where larger, padded where smaller."""
    rows, cols = (min(n, side) for n in heatmaps.shape[-2:])
    small = F.adaptive_avg_pool2d(heatmaps.double()[:, None], (rows, cols))[:, 0]
    return F.pad(small, (0, side - cols, 0, side - rows))


def patterns(heatmaps: Heatmaps) -> Float[Tensor, "batch cells"]:
    """Maps on a coarse grid, without their means, of length 1; constant ones stay 0."""
    coarse = F.adaptive_avg_pool2d(heatmaps.double()[:, None], COARSE).flatten(1)
    centred = coarse - coarse.mean(1, keepdim=True)
    size = centred.norm(dim=1, keepdim=True)
    return centred / size.where(size > 1e-9 * coarse.norm(dim=1, keepdim=True), torch.inf)


class OneMapShare(Measure):
    """The share of the energy of all maps that their mean explains; 1 is a template."""

    higher_is_better = False
    headline = ("share", "unrelated", "pattern")
    shape = (2 + SIDE**2 + COARSE**4,)

    def passes(self) -> Passes:
        """The picture as it is."""
        return Passes(1, 0)

    def _update(self, batch: Batch) -> Statistics:
        heatmaps = self.explainer(batch.images, batch.classes)
        maps, coarse = shrunk(heatmaps).flatten(1), patterns(heatmaps)
        energy, products = maps.square().sum(1, keepdim=True), coarse[:, :, None] * coarse[:, None]
        return torch.cat([torch.ones_like(energy), energy, maps, products.flatten(1)], dim=1)

    def _compute(self, sums: Sums) -> OneMapShareResult:
        n, energy, (maps, products) = sums[:, 0], sums[:, 1], sums[:, 2:].split([SIDE**2, COARSE**4], 1)
        total, gram = maps.square().sum(1), products.unflatten(1, (COARSE**2, COARSE**2))
        pattern = ratio(torch.linalg.eigvalsh(gram)[:, -1], gram.diagonal(dim1=1, dim2=2).sum(1))
        share, unrelated = ratio(total, n * energy), ratio(torch.ones_like(n), n)
        # A resample shows pictures twice, which alone would raise its share by (1 - share) / n.
        resampled = ratio(share[1:] - unrelated[1:], 1 - unrelated[1:])
        one_map = estimate(torch.cat([share[:1], resampled]))
        return OneMapShareResult(one_map, float(unrelated[0]), estimate(pattern))
