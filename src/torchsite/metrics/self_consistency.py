"""Self-consistency: does the explanation move with the picture? (Section 3.4 of the paper.)

    raw        = mean over x and β of cos(m_β ⊙ T_β(I(x)), m_β ⊙ I(T_β x))
    floor      = mean over x ≠ x′ and β of cos(m_β ⊙ T_β(I(x)), m_β ⊙ I(T_β x′))
    calibrated = (raw - floor) / (1 - floor),    0 where the floor is 1
    centred    = raw with Pearson's correlation over the pixels of m_β instead of the cosine

Raw is the paper's score. Alone it means little: two independent non-negative random maps score 0.87 and a
constant map scores 1. The *mismatched floor* is what the same explainer gets when the two maps belong to
different pictures, so calibrated is 0 for maps that are independent of their picture and 1 for perfect ones.

What is held fixed: the class is the caller's, by custom the one predicted on x, and it does not change when
the prediction on T x does; x′ keeps its own class, which may be that of x. Maps are enlarged first and then
transformed, at the resolution of the image. The partner x′ of x comes from the same batch, another one for
each β: a picture that is alone in its batch adds nothing to the floor. It costs no further explanation, since
T_j(I(x_i)) is compared with the I(T_j x_j) that raw needs anyway. Poses whose mask is empty are not counted.
The edges of a picture and the picture itself score near 1 without explaining any model: read it beside
`sanity`. `self_consistency` fails for a single picture.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from torchsite.data import ImagesLike
from torchsite.errors import ShapeError
from torchsite.metrics.carried import Carried, carry
from torchsite.metrics.estimate import N_RESAMPLES, Estimate, each_group, ratio
from torchsite.metrics.explainer import as_explainer, pictures_for
from torchsite.metrics.grouping import Curve, Grouping, calibrated
from torchsite.metrics.measure import Batch, Measure, Statistics, Sums
from torchsite.metrics.poses import Poses
from torchsite.randomness import Rng
from torchsite.shapes import Heatmaps, Labels, Masks
from torchsite.transforms import Transform, TransformFamily


class Consistency(NamedTuple):
    """The four figures that belong together."""

    raw: Estimate
    floor: Estimate
    calibrated: Estimate
    centred: Estimate


class SelfConsistencyResult(NamedTuple):
    """The four figures overall, against angle, shift and scale, and for each explained class."""

    raw: Estimate
    floor: Estimate
    calibrated: Estimate
    centred: Estimate
    curves: dict[str, Curve]
    per_class: list[Consistency]


def self_consistency(
    explain: Any,
    images: ImagesLike,
    classes: Labels,
    *,
    family: TransformFamily | None = None,
    n_transforms: int = 4,
    rng: Rng,
    batch_size: int = 64,
    n_resamples: int = N_RESAMPLES,
) -> SelfConsistencyResult:
    """Measure an explainer on pictures in memory, `batch_size` of them (at least 3) at a time: see above."""
    images = pictures_for(as_explainer(explain).model, images)
    if len(images) < 2:
        raise ShapeError(
            f"the mismatched floor pairs different pictures: expected two or more, got {len(images)}"
        )
    seed = int(torch.randint(2**62, (1,), generator=rng))
    poses = Poses(TransformFamily() if family is None else family, n_transforms, seed)
    options: dict[str, Any] = {"n_classes": int(classes.max()) + 1, "n_resamples": n_resamples}
    metric = SelfConsistency(explain, poses=poses, sync_on_compute=False, **options)  # of this process alone
    for part in torch.arange(len(images)).tensor_split(math.ceil(len(images) / max(batch_size, 3))):
        metric.update(images[part], classes[part], indices=part)
    result: SelfConsistencyResult = metric.result()
    return result


def consistency_scores(
    untouched: Heatmaps, renewed: Heatmaps, transform: Transform, offset: int, seen: Masks | None = None
) -> Float[Tensor, "batch 5"]:
    """For each picture: raw, centred, whether they count; floor, whether it counts.

    `untouched` is I(x), `renewed` is I(T x); the floor carries the map of the picture `offset` places on.
    Compared is what the transform shows, and of that, if `seen` is given, only what it holds.
    """
    both = carry(untouched, renewed, transform, others=untouched.roll(-offset, 0)[:, None])
    both = both if seen is None else replace(both, masks=both.masks & seen)
    return scores_of_carried(both, has_other=offset % max(len(renewed), 1) != 0)


def scores_of_carried(both: Carried, *, has_other: bool) -> Float[Tensor, "batch 5"]:
    """The same columns from maps that have been carried; the first of the others is the floor's."""
    counts = both.visible
    paired = counts & has_other
    columns = [both.raw, both.centred, counts.double(), both.mismatched[:, 0] * paired, paired.double()]
    return torch.stack(columns, dim=1)


class SelfConsistency(Measure):
    """Raw, floor, calibrated and centred self-consistency, with curves and a table of classes."""

    shares_passes = True
    headline = ("raw", "floor", "calibrated", "centred")

    def __init__(self, explain: Any, model: Any = None, **options: Any) -> None:
        super().__init__(explain, model, **options)
        self.grouping = Grouping.of_family(self.poses.family, self.n_classes)
        self._add_sums(len(self.grouping), 5)

    def _update(self, batch: Batch) -> Statistics:
        untouched, scores = self.explainer(batch.images, batch.classes), []
        for transform, offset in self._paired(batch):
            renewed = self.explainer(transform(batch.images), batch.classes)
            scores.append((transform, consistency_scores(untouched, renewed, transform, offset)))
        return self.grouping.mean(batch.classes, scores)

    def _compute(self, sums: Sums) -> SelfConsistencyResult:
        total, per_class, curves = self.grouping.split(consistencies(sums))
        return SelfConsistencyResult(*total, curves, per_class)


def consistencies(sums: Float[Tensor, "resamples groups 5"]) -> list[Consistency]:
    """The four figures of every group."""
    raw_sum, centred_sum, n, floor_sum, n_floor = sums.unbind(-1)
    raw, floor, centred = ratio(raw_sum, n), ratio(floor_sum, n_floor), ratio(centred_sum, n)
    return each_group(Consistency, raw, floor, calibrated(raw, floor), centred)
