"""Two measures of prototypes: does another classifier recognise them, and is the nearest one the prediction?

    recognised  = mean over x and i of 1[argmax judge(w_i(x)) = i]
    nearest     = share of x with argmax_i cos(w_i(x), F1(x)) = argmax_i logit_i(x)
    consistency = mean over x, β and i of cos(m_β ⊙ T_β(w_i(x)), m_β ⊙ w_i(T_β x))

*Recognition.* The judge is an independent classifier, trained on other weights and better without SITE's
architecture. It takes prototypes as pictures, so it fails where the features are not the picture itself
(F1 = identity). On transformed pictures the prototypes take the picture's pose, and the judge must have
learnt such poses. A judge that cannot distinguish the prototypes gives 1/classes, the floor.

*Likeness.* Logits are products, which large prototypes win whatever they show; the cosine is independent of
size. The floor of `nearest` is the share of the commonest answer. `consistency` is self-consistency of the
prototypes themselves: where features are pixels, maps are mostly the picture, and follow it whatever the
prototypes do. Its floor takes the prototypes of another picture of the batch, for all classes. Both exist for
any features; prototypes are moved at the resolution of the features.

Both fail for a model without prototypes (`.explain`), and unless `n_classes` is given.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from torchsite.errors import NotApplicableError
from torchsite.metrics.carried import Carried
from torchsite.metrics.estimate import Estimate, estimate, estimates, ratio
from torchsite.metrics.grouping import one_hot
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums
from torchsite.metrics.self_consistency import Consistency, consistencies, scores_of_carried
from torchsite.modes import evaluating
from torchsite.shapes import Images, Labels, Prototypes
from torchsite.transforms import Transform


class PrototypeRecognitionResult(NamedTuple):
    """The share of prototypes that the judge names as theirs, the floor, and the share for each class."""

    untransformed: Estimate
    transformed: Estimate
    floor: float
    per_class: list[Estimate]


class PrototypeLikenessResult(NamedTuple):
    """How often the nearest prototype is the predicted class', and how prototypes follow the picture."""

    nearest: Estimate
    nearest_transformed: Estimate
    nearest_floor: float
    consistency: Consistency


class _OfPrototypes(Measure):
    """A measure that asks for the model's explanation, prototypes and features, in each pose."""

    of_model = of_prototypes = needs_classes = shares_passes = True

    def _explained(self, images: Images) -> Any:
        model: Any = self.explainer.require_model()
        with evaluating(model), torch.no_grad():
            return model.explain(images)


class PrototypeRecognition(_OfPrototypes):
    """The share of prototypes that an independent judge puts into their own class."""

    needs_options = ("judge",)
    headline = ("untransformed", "transformed")

    def __init__(self, explain: Any, model: Any = None, *, judge: nn.Module, **options: Any) -> None:
        super().__init__(explain, model, **options)
        self._judge = (judge,)  # a tuple, lest the judge become part of the state
        self._add_sums(3, self.n_classes)

    def passes(self) -> Passes:
        """The picture as it is and in each pose; of each, the judge's answers for all prototypes."""
        return Passes(1 + self.poses.n, (1 + self.poses.n) * self.n_classes)

    def _update(self, batch: Batch) -> Statistics:
        both = self._still_and_moved(batch, self._named)
        return torch.cat([torch.ones_like(both[:, :1]), both], dim=1)

    def _named(self, batch: Batch) -> Float[Tensor, "batch classes"]:
        """1 where the judge names the prototype of class i as class i."""
        prototypes, judge = self._explained(batch.images).prototypes, self._judge[0]
        expected = (len(batch), self.n_classes, *batch.images.shape[1:])
        if tuple(prototypes.shape) != expected:
            raise NotApplicableError(
                f"prototypes of shape {tuple(prototypes.shape[1:])} are no pictures of shape {expected[1:]}: "
                "a judge can look at them only where the feature extractor is the identity"
            )
        with evaluating(judge), torch.no_grad():
            answers: Tensor = judge(prototypes.flatten(0, 1)).argmax(1).unflatten(0, prototypes.shape[:2])
        return (answers == torch.arange(self.n_classes, device=answers.device)).double()

    def _compute(self, sums: Sums) -> PrototypeRecognitionResult:
        n, still, moved = sums.unbind(1)
        rates = [ratio(named, n) for named in (still, moved)]
        means = [estimate(rows.mean(1)) for rows in rates]
        return PrototypeRecognitionResult(means[0], means[1], 1 / self.n_classes, estimates(rates[0]))


class PrototypeLikeness(_OfPrototypes):
    """The share of pictures nearest to the prototype of their predicted class; consistency of prototypes."""

    headline = ("nearest", "nearest_transformed", "consistency.raw", "consistency.floor")

    def __init__(self, explain: Any, model: Any = None, **options: Any) -> None:
        super().__init__(explain, model, **options)
        self._add_sums(3 + 5 + self.n_classes)

    def _update(self, batch: Batch) -> Statistics:
        untouched, still, predicted = self._nearest(batch.images)
        near, scores = torch.zeros_like(still), torch.zeros(len(batch), 5, dtype=torch.float64)
        for transform, offset in self._paired(batch):
            renewed, named, _ = self._nearest(transform(batch.images))
            scores += prototype_consistency(untouched, renewed, transform, offset) / self.poses.n
            near += named / self.poses.n
        counts = torch.stack([torch.ones_like(still), still, near], dim=1).cpu()
        return torch.cat([counts, scores, one_hot(predicted.cpu(), self.n_classes)], dim=1)

    def _nearest(self, images: Images) -> tuple[Prototypes, Tensor, Labels]:
        """Prototypes, 1 where the nearest is that of the predicted class, and this class."""
        found = self._explained(images)
        predicted = found.logits.argmax(1)
        nearest = likeness(found.prototypes, found.features).argmax(1)
        return found.prototypes, (nearest == predicted).double(), predicted

    def _compute(self, sums: Sums) -> PrototypeLikenessResult:
        n, still, moved = sums[:, :3].unbind(1)
        commonest = float(ratio(sums[0, 8:], n[0]).max())
        (consistency,) = consistencies(sums[:, None, 3:8])
        means = [estimate(ratio(part, n)) for part in (still, moved)]
        return PrototypeLikenessResult(means[0], means[1], commonest, consistency)


def likeness(prototypes: Prototypes, features: Tensor) -> Float[Tensor, "batch classes"]:
    """cos(w_i, z) for every class."""
    return F.cosine_similarity(prototypes.flatten(2).double(), features.flatten(1).double()[:, None], dim=2)


def prototype_consistency(
    untouched: Prototypes, renewed: Prototypes, transform: Transform, offset: int
) -> Float[Tensor, "batch 5"]:
    """The columns of `consistency_scores`, of each picture the means over its classes.

    The cosine of a class runs over depth, rows and columns together.
    """
    n, n_classes, depth, rows, cols = renewed.shape
    masks = transform.mask((rows, cols))[:, None, None].expand(renewed.shape)
    still, carried, others, there, seen = (
        maps.reshape(n * n_classes, depth * rows, cols)
        for maps in (untouched, transform(untouched), transform(untouched.roll(-offset, 0)), renewed, masks)
    )
    both = Carried(still, carried, there, seen, others[:, None])
    scores = scores_of_carried(both, has_other=offset % max(n, 1) != 0)
    return scores.unflatten(0, (n, n_classes)).mean(1).cpu()
