"""Self-consistency: does the explanation move with the picture? (Section 3.4 of the paper.)

    raw        = mean over x and β of cos(m_β ⊙ T_β(I(x)), m_β ⊙ I(T_β x))
    floor      = mean over x ≠ x′ and β of cos(m_β ⊙ T_β(I(x)), m_β ⊙ I(T_β x′))
    calibrated = (raw - floor) / (1 - floor),    0 where the floor is 1
    centred    = raw with Pearson's correlation over the pixels of m_β instead of the cosine

Raw is the paper's score. Alone it says little: two independent non-negative random maps score 0.87 and a
constant map scores 1. The *mismatched floor* is what the same explainer gets when the two maps belong to
different pictures, so calibrated is 0 for maps that know nothing of their picture and 1 for perfect ones.

What is held fixed: the class is the caller's, by custom the one predicted on x, and it does not change when
the prediction on T x does; x′ keeps its own class, which may be that of x. Maps are enlarged first and then
transformed, at the resolution of the image. The partner x′ of x comes from the same batch, another one for
each β: a picture that is alone in its batch adds nothing to the floor. It costs no further explanation, since
T_j(I(x_i)) is compared with the I(T_j x_j) that raw needs anyway. Poses whose mask is empty are not counted.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from torchsite.errors import ShapeError
from torchsite.metrics.estimate import N_RESAMPLES, Estimate, estimates, ratio
from torchsite.metrics.measure import Batch, Measure, Statistics, Sums, one_hot
from torchsite.metrics.poses import Poses
from torchsite.metrics.similarity import masked_cosine, masked_pearson
from torchsite.randomness import Rng
from torchsite.shapes import Heatmaps, Images, Labels
from torchsite.transforms import Transform, TransformFamily, angles, scales, shifts

N_BINS = 6
NO_ROOM = 1e-6  # a floor this near 1 is 1 as far as float32 maps can tell


PARAMETERS: Mapping[str, Callable[[Transform], Float[Tensor, " batch"]]] = {
    "angle": lambda transform: angles(transform).abs(),
    "shift": shifts,
    "scale": scales,
}


class Consistency(NamedTuple):
    """The four figures that belong together."""

    raw: Estimate
    floor: Estimate
    calibrated: Estimate
    centred: Estimate


class Curve(NamedTuple):
    """The four figures against one parameter of the transform; `edges` has one value more than `scores`."""

    edges: list[float]
    scores: list[Consistency]


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
    images: Images,
    classes: Labels,
    *,
    family: TransformFamily | None = None,
    n_transforms: int = 4,
    rng: Rng,
    chunk: int = 64,
    n_resamples: int = N_RESAMPLES,
) -> SelfConsistencyResult:
    """Measure an explainer on pictures in memory, `chunk` of them (at least 3) at a time: see above."""
    if len(images) < 2:
        raise ShapeError(
            f"the mismatched floor pairs different pictures: expected two or more, got {len(images)}"
        )
    seed = int(torch.randint(2**62, (1,), generator=rng))
    poses = Poses(TransformFamily() if family is None else family, n_transforms, seed)
    metric = SelfConsistency(explain, poses=poses, n_classes=int(classes.max()) + 1, n_resamples=n_resamples)
    for part in torch.arange(len(images)).tensor_split(math.ceil(len(images) / max(chunk, 3))):
        metric.update(images[part], classes[part], indices=part)
    result: SelfConsistencyResult = metric.compute()
    return result


def consistency_scores(
    untouched: Heatmaps, renewed: Heatmaps, transform: Transform, offset: int
) -> Float[Tensor, "batch 5"]:
    """For each picture: raw, centred, whether they count; floor, whether it counts.

    `untouched` is I(x), `renewed` is I(T x); the floor carries the map of the picture `offset` places on.
    """
    masks = transform.mask((renewed.shape[-2], renewed.shape[-1]))
    counts = masks.flatten(1).any(1)
    carried = transform(untouched)
    raw, centred = masked_cosine(carried, renewed, masks), masked_pearson(carried, renewed, masks)
    has_partner = counts & (offset % max(len(renewed), 1) != 0)
    floor = masked_cosine(transform(untouched.roll(-offset, 0)), renewed, masks)
    return torch.stack([raw, centred, counts.double(), floor * has_partner, has_partner.double()], dim=1)


class SelfConsistency(Measure):
    """Raw, floor, calibrated and centred self-consistency, with curves and a table of classes."""

    headline = ("raw", "floor", "calibrated", "centred")

    def __init__(
        self, explain: Any, model: Any = None, *, n_classes: int = 0, n_bins: int = N_BINS, **options: Any
    ) -> None:
        super().__init__(explain, model, **options)
        self.n_classes = n_classes
        self.edges = curve_edges(self.poses.family, n_bins)
        n_groups = 1 + n_classes + sum(len(edges) - 1 for edges in self.edges.values())
        self._add_sums(n_groups, 5)

    def _update(self, batch: Batch) -> Statistics:
        untouched = self.explainer(batch.images, batch.classes)
        statistics = torch.zeros(len(batch), *self.sums.shape[1:], dtype=torch.float64)
        for number, transform in enumerate(self._transforms(batch)):
            renewed = self.explainer(transform(batch.images), batch.classes)
            offset = partner_offset(number, self.poses.n, len(batch))
            scores = consistency_scores(untouched, renewed, transform, offset).cpu()
            statistics += self._groups(batch, transform)[:, :, None] * scores[:, None, :] / self.poses.n
        return statistics

    def _groups(self, batch: Batch, transform: Transform) -> Float[Tensor, "batch groups"]:
        """Which sums each score enters: the total, that of its class, that of its bin on every curve."""
        parts = [torch.ones(len(batch), 1, dtype=torch.float64)]
        if self.n_classes:
            parts.append(one_hot(batch.classes.cpu(), self.n_classes))
        for name, edges in self.edges.items():
            inner = torch.tensor(edges[1:-1], dtype=torch.float64)
            values = PARAMETERS[name](transform).cpu()
            parts.append(one_hot(torch.bucketize(values, inner), len(edges) - 1))
        return torch.cat(parts, dim=1)

    def _compute(self, sums: Sums) -> SelfConsistencyResult:
        scores = consistencies(sums)
        n = 1 + self.n_classes
        curves = {}
        for name, edges in self.edges.items():
            curves[name] = Curve(edges, scores[n : n + len(edges) - 1])
            n += len(edges) - 1
        return SelfConsistencyResult(*scores[0], curves, scores[1 : 1 + self.n_classes])


def consistencies(sums: Float[Tensor, "resamples groups 5"]) -> list[Consistency]:
    """The four figures of every group."""
    raw_sum, centred_sum, n, floor_sum, n_floor = sums.unbind(-1)
    raw, floor, centred = ratio(raw_sum, n), ratio(floor_sum, n_floor), ratio(centred_sum, n)
    columns = [estimates(rows) for rows in (raw, floor, calibrated(raw, floor), centred)]
    return [Consistency(*four) for four in zip(*columns, strict=True)]


def calibrated(raw: Tensor, floor: Tensor) -> Tensor:
    """(raw - floor) / (1 - floor): how much of the way from the floor to perfection; 0/0 is 0."""
    room = 1 - floor
    return torch.where(room.abs() < NO_ROOM, 0.0, (raw - floor) / torch.where(room == 0, 1.0, room))


def partner_offset(number: int, n_transforms: int, n_images: int) -> int:
    """How far on in the batch the partner stands: never 0 (if avoidable), spread evenly over transforms."""
    if n_images < 2:
        return 0
    return 1 + (number * (n_images - 1)) // n_transforms


def curve_edges(family: TransformFamily, n_bins: int) -> dict[str, list[float]]:
    """The bins of each parameter that the family varies: degrees turned, share of the side, factor."""
    low, high = family.scale
    ranges = {
        "angle": (0.0, family.max_rotation),
        "shift": (0.0, math.sqrt(2) * family.max_shift),
        "scale": (low, high),
    }
    return {
        name: torch.linspace(low, high, n_bins + 1, dtype=torch.float64).tolist()
        for name, (low, high) in ranges.items()
        if low < high
    }
