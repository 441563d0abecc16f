"""Energy pointing: how much of the positive evidence lies on the object? (Wang et al., 2020: Score-CAM.)

    share(x) = Σ_{u in region} max(I(x)_u, 0) / Σ_u max(I(x)_u, 0),      area(x) = the region's share of x
    ratio    = mean share / mean area

A map without information has the area, hence ratio 1; a blob in the middle has more where objects are in the
middle (`centre`, a Gaussian of a quarter of the side). Regions are those of the pointing game: soft maps that
move with the picture, cut at one half. A map without any positive evidence points nowhere: its share is 0. A
region that has left the frame does not count. The class explained is the object's true one. Fails where no
regions are given.
"""

from typing import NamedTuple

import torch

from torchsite.metrics.control_maps import centre_blob
from torchsite.metrics.estimate import Estimate, each_group, ratio
from torchsite.metrics.measure import Batch, Measure, Statistics, Sums
from torchsite.metrics.pointing_game import THRESHOLD
from torchsite.shapes import Heatmaps, Masks, Scores


class Energy(NamedTuple):
    """The share of the positive evidence on the object, the object's area, their ratio; a central blob."""

    share: Estimate
    area: Estimate
    ratio: Estimate
    centre: Estimate


class EnergyPointingResult(NamedTuple):
    """On pictures as they are and transformed."""

    untransformed: Energy
    transformed: Energy


def energy_inside(heatmaps: Heatmaps, regions: Masks) -> Scores:
    """The share of the positive evidence within the region; 0 where there is none at all."""
    positive = heatmaps.double().clamp_min(0).flatten(1)
    total = positive.sum(1)
    inside = (positive * regions.flatten(1)).sum(1)
    return torch.where(total > 0, inside / torch.where(total > 0, total, 1.0), 0.0)


class EnergyPointing(Measure):
    """The share of the positive evidence within the object's region, beside the region's area."""

    needs_regions = True
    headline = ("untransformed.share", "transformed.share", "transformed.area", "transformed.ratio")
    shape = (2, 4)

    def _update(self, batch: Batch) -> Statistics:
        return self._still_and_moved(batch, self._shares)

    def _shares(self, batch: Batch) -> Statistics:
        """Whether the picture counts; its share, its area, the share of a central blob."""
        masks = batch.known_regions > THRESHOLD
        counts = masks.flatten(1).any(1).double()
        share = energy_inside(self.explainer(batch.images, batch.labels), masks)
        area = masks.double().flatten(1).mean(1)
        centre = energy_inside(centre_blob(batch.images, batch.labels), masks)
        return torch.stack([counts, share, area, centre], dim=1) * counts[:, None]

    def _compute(self, sums: Sums) -> EnergyPointingResult:
        n, share, area, centre = sums.unbind(2)
        figures = (ratio(share, n), ratio(area, n), ratio(share, area), ratio(centre, n))
        return EnergyPointingResult(*each_group(Energy, *figures))
