"""The pointing game: does the heatmap's maximum lie on the object? (Appendix of the paper.)

    hit(x) = share of the maximal pixels of I(x) within τ pixels of the object's region
    score  = mean over classes of hits / (hits + misses)

The class explained is the object's true one. Distance is Euclidean, between pixel centres. Where several
pixels share the maximum, each counts for its share: ties are broken uniformly at random, in expectation, so
that a constant map scores the region's area and not whether the first pixel happens to be a hit. The paper
names no τ, so all of τ = 0, 1, 2, 3 are reported, and beside each what two maps without information get:
one that points anywhere (the region's share of the picture) and one that points at the centre.

Regions are soft maps in [0, 1] that move with the picture; the region is where T(map) > 0.5. For annotated
MNIST the map is the picture itself (`strokes`): the region is the strokes brighter than half, transformed
alongside. `box_regions` turns boxes into maps. A picture whose region has left the frame is neither hit nor
miss; classes that never occur do not enter the mean. Fails where no regions are given, and unless `n_classes`
is.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.errors import ConfigError
from torchsite.metrics.estimate import Estimate, estimates, ratio
from torchsite.metrics.grouping import one_hot
from torchsite.metrics.measure import Batch, Measure, Statistics, Sums
from torchsite.shapes import Heatmaps, Images, Masks, Size

TOLERANCES = (0, 1, 2, 3)
THRESHOLD = 0.5


class Pointing(NamedTuple):
    """The score at one tolerance, what pointing anywhere and at the centre get, and each class."""

    score: Estimate
    anywhere: Estimate
    centre: Estimate
    per_class: list[Estimate]


class PointingGameResult(NamedTuple):
    """The score for each tolerance, as "tau_0" …, on pictures as they are and transformed."""

    untransformed: dict[str, Pointing]
    transformed: dict[str, Pointing]


def strokes(images: Images) -> Heatmaps:
    """The regions of bright strokes on black, as in MNIST: the mean over channels."""
    return images.mean(dim=1)


def box_regions(boxes: Float[Tensor, "batch 4"], size: Size) -> Heatmaps:
    """Regions from boxes (left, top, right, bottom) in pixels: the pixels whose centre lies inside."""
    rows, cols = (torch.arange(n, device=boxes.device) + 0.5 for n in size)
    left, top, right, bottom = (side[:, None] for side in boxes.unbind(1))
    across, down = (cols >= left) & (cols < right), (rows >= top) & (rows < bottom)
    return (down[:, :, None] & across[:, None, :]).to(torch.get_default_dtype())


def dilate(masks: Masks, tolerance: int) -> Masks:
    """The pixels within `tolerance` of the mask, centre to centre."""
    if tolerance == 0:
        return masks
    reach = torch.arange(-tolerance, tolerance + 1, device=masks.device)
    disc = (reach[:, None] ** 2 + reach[None, :] ** 2 <= tolerance**2).float()
    return F.conv2d(masks[:, None].float(), disc[None, None], padding=tolerance)[:, 0] > 0.5


def pointing_hits(heatmaps: Heatmaps, regions: Masks) -> Float[Tensor, " batch"]:
    """The share of each map's maximal pixels that lie in the region."""
    flat = heatmaps.flatten(1)
    maximal = flat == flat.amax(dim=1, keepdim=True)
    return (maximal & regions.flatten(1)).double().sum(1) / maximal.double().sum(1)


def centre_map(size: Size) -> Float[Tensor, "1 rows cols"]:
    """1 at the centre (at four pixels if the sides are even), 0 elsewhere."""
    row, col = ((torch.arange(n) - (n - 1) / 2).abs() < 1 for n in size)
    return (row[:, None] & col[None, :]).float()[None]


class PointingGame(Measure):
    """Per-class mean hit rate for several tolerances, untransformed and transformed, with floors."""

    needs_regions = needs_classes = shares_passes = True
    headline = ("untransformed.tau_0.score", "transformed.tau_0.score", "transformed.tau_0.anywhere")

    def __init__(
        self,
        explain: Any,
        model: Any = None,
        *,
        tolerances: Sequence[int] = TOLERANCES,
        **options: Any,
    ) -> None:
        super().__init__(explain, model, **options)
        if not tolerances or min(tolerances) < 0:
            raise ConfigError(f"tolerances: expected whole pixels from 0, got {tuple(tolerances)}")
        self.tolerances = tuple(tolerances)
        self._add_sums(2, self.n_classes, 1 + 3 * len(self.tolerances))

    def _update(self, batch: Batch) -> Statistics:
        both = self._still_and_moved(batch, self._hits)
        classes = one_hot(batch.labels.cpu(), self.n_classes)
        return both[:, :, None, :] * classes[:, None, :, None]

    def _hits(self, batch: Batch) -> Float[Tensor, "batch statistics"]:
        """Whether the picture counts, then hits of the map, of any point, of the centre, per tolerance."""
        heatmaps = self.explainer(batch.images, batch.labels).cpu()
        masks: Masks = (batch.known_regions > THRESHOLD).cpu()
        counts = masks.flatten(1).any(1).double()
        columns = [counts]
        for near in (dilate(masks, tolerance) for tolerance in self.tolerances):
            centre = pointing_hits(centre_map(batch.size).expand_as(heatmaps), near)
            columns += [pointing_hits(heatmaps, near), near.double().flatten(1).mean(1), centre]
        return torch.stack(columns, dim=1) * counts[:, None]

    def _compute(self, sums: Sums) -> PointingGameResult:
        still, moved = sums.unbind(1)
        return PointingGameResult(self._scores(still), self._scores(moved))

    def _scores(self, sums: Float[Tensor, "resamples classes statistics"]) -> dict[str, Pointing]:
        rates = ratio(sums[..., 1:], sums[..., :1]).unflatten(-1, (-1, 3))
        means = rates.nanmean(dim=1)
        found = {}
        for k, tolerance in enumerate(self.tolerances):
            score, anywhere, centre = estimates(means[:, k])
            found[f"tau_{tolerance}"] = Pointing(score, anywhere, centre, estimates(rates[:, :, k, 0]))
        return found
