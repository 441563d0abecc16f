"""Frame control: does the map follow the picture, or the frame that black corners give away?

    black        = self-consistency with black corners, the paper's (see `self_consistency`)
    filled       = the same with corners in the picture's mean colour, from another picture, reflected;
                   cropped from a larger picture where one is given
    content-free = the same on grey pictures of each picture's mean colour, with black corners
    evidence     = mean Σ_u |I(grey)_u| / mean Σ_u |I(x)_u|

A posed picture with black corners shows its pose: a network may find the corners and draw one blob in that
pose, which is consistent and has no information. Such a template is perfect on black corners, falls where
they are filled, is perfect on pictures without content (raw 1), and has as much evidence on grey pictures as
on others (evidence 1). A map that follows the picture keeps `filled` near `black` and has little evidence on
grey ones. Grey pictures are explained for the class that the model predicts for them, upright: the class of
the real picture would favour a model with a default class. Where there is no model to ask, that one is taken.
Maps that are rescaled one by one have no size: their evidence means nothing.

The same poses, classes, masks and partners as in self-consistency, so `black` is that measure's number. A map
without information has calibrated 0 under every filling, and evidence 1. A picture alone in its batch has no
other to fill its corners with: that filling is then left out.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from torchsite.metrics.estimate import Estimate, estimate, ratio
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums
from torchsite.metrics.self_consistency import Consistency, consistencies, consistency_scores
from torchsite.shapes import Images, Labels
from torchsite.transforms import FILLS, FillLike, Transform, as_fill

BLACK = FILLS["black"]
FILLINGS = ("mean", "other", "reflection")
CROPPED = "larger"  # the name in results


class Evidence(NamedTuple):
    """The size of maps of real pictures, of pictures without content, and their ratio."""

    real: Estimate
    content_free: Estimate
    ratio: Estimate


class FrameControlResult(NamedTuple):
    """Consistency with black corners, on average over the other fillings, without content; each filling."""

    black: Consistency
    filled: Consistency
    content_free: Consistency
    evidence: Evidence
    fills: dict[str, Consistency]


class FrameControl(Measure):
    """Self-consistency under every filling of the corners, and on pictures without content."""

    probes = True
    definition = 2  # 1: grey pictures explained for the class of the real ones
    headline = ("black.calibrated", "filled.calibrated", "content_free.raw", "evidence.ratio")

    def __init__(
        self, explain: Any, model: Any = None, *, fills: Sequence[FillLike] = FILLINGS, **options: Any
    ) -> None:
        super().__init__(explain, model, **options)
        given = tuple(as_fill(fill) for fill in fills)
        self.fills = (BLACK, *(fill for fill in given if fill != BLACK))
        self._add_sums(len(self.fills) + 3, 5)  # and: cropped, content-free, sizes

    def passes(self) -> Passes:
        """The picture and a grey one, then each filling and the grey one in each pose; the class of grey."""
        return Passes(2 + self.poses.n * (len(self.fills) + 1), 1)

    def _update(self, batch: Batch) -> Statistics:
        grey = FILLS["mean"].background(batch.images)
        seen = self._seen_in(grey, batch.classes)
        real_maps, grey_maps = self.explainer(batch.images, batch.classes), self.explainer(grey, seen)
        rows = torch.zeros(len(batch), len(self.fills) + 3, 5, dtype=torch.float64)
        for number, (transform, offset) in enumerate(self._paired(batch)):
            for row, posed in self._posed(batch, transform, number):
                renewed = self.explainer(posed, batch.classes)
                rows[:, row] += consistency_scores(real_maps, renewed, transform, offset).cpu()
            renewed = self.explainer(transform(grey), seen)
            rows[:, -2] += consistency_scores(grey_maps, renewed, transform, offset).cpu()
        sizes = [maps.double().abs().flatten(1).sum(1).cpu() for maps in (real_maps, grey_maps)]
        rows[:, -1, :3] = self.poses.n * torch.stack([torch.ones(len(batch)), *sizes], dim=1)
        return rows / self.poses.n

    def _seen_in(self, grey: Images, classes: Labels) -> Labels:
        """What the model sees in pictures without content; the given classes if there is no model."""
        return classes if self.explainer.model is None else self.explainer.predict(grey)

    def _posed(self, batch: Batch, transform: Transform, number: int) -> Iterator[tuple[int, Images]]:
        """The row of the sums, and the posed pictures with one filling; a picture alone has no other."""
        for row, fill in enumerate(self.fills):
            if fill != FILLS["other"] or len(batch) > 1:
                yield row, transform(batch.images, fill=fill, rng=self._rng(batch, fill.name, number))
        if batch.padded is not None:
            yield len(self.fills), transform.cropped_from(batch.padded, batch.size)

    def _compute(self, sums: Sums) -> FrameControlResult:
        filled = sums[:, 1:-2].sum(1, keepdim=True)
        *found, content_free, mean = consistencies(torch.cat([sums[:, :-1], filled], dim=1))
        names = [*(fill.name for fill in self.fills), CROPPED]
        seen = (sums[0, :-2, 2] > 0).tolist()
        fills = {
            name: figures for name, figures, any_seen in zip(names, found, seen, strict=True) if any_seen
        }
        return FrameControlResult(found[0], mean, content_free, _evidence(sums[:, -1]), fills)


def _evidence(sums: Float[Tensor, "resamples 5"]) -> Evidence:
    n, real, grey = sums[:, :3].unbind(1)
    return Evidence(*(estimate(ratio(*pair)) for pair in ((real, n), (grey, n), (grey, real))))
