"""Prototype recognition: is the prototype of class i a picture that others take for class i?

    share = mean over x and i of 1[argmax judge(w_i(x)) = i]

The judge is an independent classifier, trained on other weights and better without SITE's architecture. It
looks at prototypes as pictures, so the measure exists for models whose features are the picture itself
(F1 = identity). On transformed pictures the prototypes take the picture's pose, and the judge must have
learnt such poses. A judge that cannot tell the prototypes apart gives 1/classes, the floor.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchsite.errors import ConfigError, NotApplicableError
from torchsite.metrics.estimate import Estimate, estimate, estimates, ratio
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums
from torchsite.modes import evaluating
from torchsite.shapes import Images, Prototypes


class PrototypeRecognitionResult(NamedTuple):
    """The share of prototypes that the judge names as theirs, the floor, and the share for each class."""

    untransformed: Estimate
    transformed: Estimate
    floor: float
    per_class: list[Estimate]


class PrototypeRecognition(Measure):
    """The share of prototypes that an independent judge puts into their own class."""

    of_model = True
    of_prototypes = True
    needs_options = ("judge",)
    shares_passes = True
    headline = ("untransformed", "transformed")

    def __init__(self, explain: Any, model: Any = None, *, judge: nn.Module, **options: Any) -> None:
        super().__init__(explain, model, **options)
        if not hasattr(self.explainer.require_model(), "explain"):
            raise NotApplicableError(
                f"{type(self.explainer.model).__name__} has no .explain and hence no prototypes to recognise"
            )
        if not self.n_classes:
            raise ConfigError("n_classes: every class has a prototype, so say how many there are")
        self._judge = (judge,)  # a tuple, lest the judge become part of the state
        self._add_sums(3, self.n_classes)

    def passes(self) -> Passes:
        """The picture as it is and in each pose; of each, the judge's answers for all prototypes."""
        return Passes(1 + self.poses.n, (1 + self.poses.n) * self.n_classes)

    def _update(self, batch: Batch) -> Statistics:
        still = self._named(batch.images)
        moved = torch.stack([self._named(transform(batch.images)) for transform in self._transforms(batch)])
        return torch.stack([torch.ones_like(still), still, moved.mean(0)], dim=1)

    def _named(self, images: Images) -> Float[Tensor, "batch classes"]:
        """1 where the judge names the prototype of class i as class i."""
        prototypes = self._prototypes(images)
        judge = self._judge[0]
        with evaluating(judge), torch.no_grad():
            logits: Tensor = judge(prototypes.flatten(0, 1))
        answers = logits.argmax(1).unflatten(0, prototypes.shape[:2])
        classes = torch.arange(self.n_classes, device=answers.device)
        named: Tensor = answers == classes
        return named.double()

    def _prototypes(self, images: Images) -> Prototypes:
        model: Any = self.explainer.require_model()
        with evaluating(model), torch.no_grad():
            prototypes: Prototypes = model.explain(images).prototypes
        expected = (len(images), self.n_classes, *images.shape[1:])
        if tuple(prototypes.shape) != expected:
            raise NotApplicableError(
                f"prototypes of shape {tuple(prototypes.shape[1:])} are no pictures of shape {expected[1:]}: "
                "a judge can look at them only where the feature extractor is the identity"
            )
        return prototypes

    def _compute(self, sums: Sums) -> PrototypeRecognitionResult:
        n, still, moved = sums.unbind(1)
        rates = [ratio(named, n) for named in (still, moved)]
        means = [estimate(rows.mean(1).cpu()) for rows in rates]
        return PrototypeRecognitionResult(means[0], means[1], 1 / self.n_classes, estimates(rates[0]))
