"""Prototype likeness: does a picture resemble its predicted class' prototype, and do prototypes move with it?

    nearest     = share of x with argmax_i cos(w_i(x), F1(x)) = argmax_i logit_i(x)
    consistency = mean over x, β and i of cos(m_β ⊙ T_β(w_i(x)), m_β ⊙ w_i(T_β x))

The first asks whether the decision rests on likeness: logits are products, which large prototypes win
whatever they show, the cosine knows no size. Its floor is the share of the commonest answer. The second is
self-consistency of the prototypes themselves: where features are pixels, maps are mostly the picture, and
follow it whatever the prototypes do. The floor takes the prototypes of another picture of the batch, for all
classes. Both exist for any features; prototypes are moved at the resolution of the features.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.errors import ConfigError, NotApplicableError
from torchsite.metrics.estimate import Estimate, estimate, ratio
from torchsite.metrics.grouping import one_hot, partner_offset
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums
from torchsite.metrics.self_consistency import Consistency, consistencies
from torchsite.metrics.similarity import masked_cosine, masked_pearson
from torchsite.modes import evaluating
from torchsite.shapes import Images, Prototypes
from torchsite.transforms import Transform


class PrototypeLikenessResult(NamedTuple):
    """How often the nearest prototype is the predicted class', and how prototypes follow the picture."""

    nearest: Estimate
    nearest_transformed: Estimate
    nearest_floor: float
    consistency: Consistency


class PrototypeLikeness(Measure):
    """The share of pictures nearest to the prototype of their predicted class; consistency of prototypes."""

    of_model = True
    of_prototypes = True
    shares_passes = True
    headline = ("nearest", "nearest_transformed", "consistency.raw", "consistency.floor")

    def __init__(self, explain: Any, model: Any = None, **options: Any) -> None:
        super().__init__(explain, model, **options)
        if not hasattr(self.explainer.require_model(), "explain"):
            raise NotApplicableError(
                f"{type(self.explainer.model).__name__} has no .explain and hence no prototypes to resemble"
            )
        if not self.n_classes:
            raise ConfigError("n_classes: every class has a prototype, so say how many there are")
        self._add_sums(3 + 5 + self.n_classes)

    def passes(self) -> Passes:
        """The picture as it is and in each pose."""
        return Passes(1 + self.poses.n, 0)

    def _update(self, batch: Batch) -> Statistics:
        untouched, still, predicted = self._explained(batch.images)
        near, scores = torch.zeros_like(still), torch.zeros(len(batch), 5, dtype=torch.float64)
        for number, transform in enumerate(self._transforms(batch)):
            renewed, named, _ = self._explained(transform(batch.images))
            offset = partner_offset(number, self.poses.n, len(batch))
            scores += prototype_consistency(untouched, renewed, transform, offset) / self.poses.n
            near += named / self.poses.n
        counts = torch.stack([torch.ones_like(still), still, near], dim=1).cpu()
        return torch.cat([counts, scores, one_hot(predicted.cpu(), self.n_classes)], dim=1)

    def _explained(self, images: Images) -> tuple[Prototypes, Tensor, Tensor]:
        """Prototypes, 1 where the nearest is that of the predicted class, and this class."""
        model: Any = self.explainer.require_model()
        with evaluating(model), torch.no_grad():
            found = model.explain(images)
        predicted = found.logits.argmax(1)
        nearest = likeness(found.prototypes, found.features).argmax(1)
        return found.prototypes, (nearest == predicted).double(), predicted

    def _compute(self, sums: Sums) -> PrototypeLikenessResult:
        n, still, moved = sums[:, :3].unbind(1)
        commonest = float(ratio(sums[0, 8:], n[0]).max())
        (consistency,) = consistencies(sums[:, None, 3:8])
        means = [estimate(ratio(part, n).cpu()) for part in (still, moved)]
        return PrototypeLikenessResult(means[0], means[1], commonest, consistency)


def likeness(prototypes: Prototypes, features: Tensor) -> Float[Tensor, "batch classes"]:
    """cos(w_i, z) for every class."""
    return F.cosine_similarity(prototypes.flatten(2).double(), features.flatten(1).double()[:, None], dim=2)


def prototype_consistency(
    untouched: Prototypes, renewed: Prototypes, transform: Transform, offset: int
) -> Float[Tensor, "batch 5"]:
    """For each picture the means over classes: raw, centred, whether they count; floor, whether it counts.

    The cosine of a class runs over depth, rows and columns together.
    """
    n, n_classes, depth, rows, cols = renewed.shape
    shape = (n * n_classes, depth * rows, cols)
    mask = transform.mask((rows, cols))
    masks = mask[:, None, None].expand(n, n_classes, depth, rows, cols).reshape(shape)
    carried, others = (transform(maps).reshape(shape) for maps in (untouched, untouched.roll(-offset, 0)))
    there = renewed.reshape(shape)
    scores = (
        masked_cosine(carried, there, masks),
        masked_pearson(carried, there, masks),
        masked_cosine(others, there, masks),
    )
    raw, centred, floor = (part.unflatten(0, (n, n_classes)).mean(1) for part in scores)
    counts = mask.flatten(1).any(1)
    has_partner = counts & (offset % max(n, 1) != 0)
    columns = [raw, centred, counts.double(), floor * has_partner, has_partner.double()]
    return torch.stack(columns, dim=1).cpu()
