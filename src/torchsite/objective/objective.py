"""The whole objective of a model as one module: a batch in, its losses out.

SITE minimises its classification loss and the weighted terms. The black box minimises its classification loss
in the same views, whatever the terms: it has no evidence to compare. Pictures with hidden blocks
are an augmentation for it; rectangles that are hidden for the equivariance term are shown to it.
"""

import abc
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.model import SITE, ImageClassifier
from torchsite.model.base import dtype_of
from torchsite.objective.batch import Batch
from torchsite.objective.classification import (
    balanced_weights,
    classification_loss,
    multi_label_loss,
    yes_weights,
)
from torchsite.objective.targets import to_unit
from torchsite.objective.term import Memory, Step, Term
from torchsite.objective.views import View, fill_corners, join_views
from torchsite.shapes import Features, Images, Labels, Logits, MultiHot, Scalar


class Outcome(NamedTuple):
    """`losses["loss"]` is minimised, the rest is worth watching; `features` are what memories learn from."""

    losses: dict[str, Tensor]
    features: Features | None = None


class Objective(nn.Module, abc.ABC):
    """What is minimised, and in which views of the pictures; its state is the model's and the memories'.

    `data` are the training pictures; `views` are seen whatever the terms compare. Fails with label smoothing
    where several labels may be true.
    """

    class_weights: Tensor | None
    multi_hot: Tensor | None

    def __init__(
        self,
        model: ImageClassifier,
        data: Dataset,
        terms: Sequence[Term] = (),
        *,
        views: Sequence[View] = (),
        corners: tuple[str, ...] = ("black",),
        label_smoothing: float = 0.0,
        class_weights: Literal["equal", "balanced"] = "equal",
    ) -> None:
        super().__init__()
        if label_smoothing and data.multi_hot is not None:
            raise ConfigError(
                f"label_smoothing: expected 0 for pictures with several labels or none, as {data.name} has, "
                f"got {label_smoothing}"
            )
        weights = None
        if class_weights == "balanced":  # rare classes count as much as others
            weights = balanced_weights(data.counts) if data.multi_hot is None else yes_weights(data.multi_hot)
        self.register_buffer("class_weights", weights, persistent=False)
        self.register_buffer("multi_hot", data.multi_hot, persistent=False)
        self.model, self.terms, self.label_smoothing = model, tuple(terms), label_smoothing
        self.views = fill_corners(views_of(model, terms, views), corners)
        self.run: Callable[[Images], Any] = model.run if isinstance(model, SITE) else model.forward

    @abc.abstractmethod
    def forward(self, batch: Batch) -> Outcome:
        """The losses of a batch, or of a part of one."""

    def truth(self, batch: Batch, counts: Sequence[int]) -> Labels | MultiHot:
        """The labels of views that show the first `counts` pictures of the batch each."""
        given = batch.labels
        if self.multi_hot is not None:
            given = self.multi_hot[batch.rows.to(self.multi_hot.device)]
        return torch.cat([given[:n] for n in counts])

    def classification(self, logits: Logits, truth: Labels | MultiHot) -> Scalar:
        """The classification loss."""
        if self.multi_hot is not None:
            return multi_label_loss(logits, truth, self.class_weights)
        return classification_loss(logits, truth, self.label_smoothing, self.class_weights)

    def accuracy(self, logits: Logits, truth: Labels | MultiHot) -> Scalar:
        """The share of right answers."""
        found = logits.argmax(1) if self.multi_hot is None else logits > 0
        return (found == truth).float().mean()

    def learn(self, batch: Batch, features: Features | None) -> None:
        """Let the memories take note of a whole step."""
        del batch, features


class SiteObjective(Objective):
    """CE(logits, y) + Σ weight · term."""

    model: SITE

    def __init__(self, model: SITE, data: Dataset, terms: Sequence[Term] = (), **options: Any) -> None:
        for term in terms:
            term.check(model)
        super().__init__(model, data, terms, **options)
        memories = {str(number): term.memory(model, data) for number, term in enumerate(terms)}
        kept = {number: memory for number, memory in memories.items() if memory is not None}
        self.memories = nn.ModuleDict(kept).to(dtype_of(model))

    def forward(self, batch: Batch) -> Outcome:
        """One pass over all views; then the classification loss, then every term that counts at this step."""
        step = Step(batch, self.model, self.run(batch.pictures()))
        truth = self.truth(batch, [len(one) for one in step.judged])
        stages = [self.classification(stage[: len(truth)], truth) for stage in step.run.stages]
        loss = torch.stack(stages).sum()
        losses = {"classification": stages[-1]}
        memories = cast(dict[str, Memory], dict(self.memories.items()))
        for number, term in enumerate(self.terms):
            if term.counts(batch.draws):
                found = term.loss(step, memories.get(str(number)))
                loss = loss + term.weight * found.loss
                losses |= numbered({term.name: found.loss, **found.watched}, losses)
        losses |= {
            "accuracy": self.accuracy(step.run.logits[: len(batch)], truth[: len(batch)]),
            "|w|": step.run.size_of_prototypes,
            "|z|": step.run.features.detach().abs().mean(),
        }
        return Outcome({"loss": loss} | losses, step.run.features[: len(batch)].detach())

    def learn(self, batch: Batch, features: Features | None) -> None:
        """What was seen in the first view."""
        assert features is not None
        for memory in cast(Iterable[Memory], self.memories.values()):
            memory.learn(to_unit(features, self.model.bce_slope), batch.rows, batch.labels, batch.poses[0])


class BlackBoxObjective(Objective):
    """Cross-entropy in the views that SITE sees: the comparison with the same budget."""

    def forward(self, batch: Batch) -> Outcome:
        """The classification loss."""
        logits, truth = self.run(batch.pictures()).float(), self.truth(batch, batch.counts)
        loss = self.classification(logits, truth)
        return Outcome({"loss": loss, "accuracy": self.accuracy(logits, truth)})


def views_of(model: ImageClassifier, terms: Sequence[Term], views: Sequence[View] = ()) -> tuple[View, ...]:
    """These views and those that the terms compare, each once, as a model of this kind is shown them."""
    joined = join_views([*views, *(view for term in terms for view in term.views())])
    if isinstance(model, SITE):
        return joined
    seen = (view.for_black_box() for view in joined)
    return tuple(view for view in seen if view is not None)


def numbered(new: dict[str, Tensor], known: dict[str, Tensor]) -> dict[str, Tensor]:
    """What several terms watch under one name gets a number, from the second on."""
    given = {}
    for name, value in new.items():
        free = (name if i == 1 else f"{name} {i}" for i in range(1, len(known) + 2))
        given[next(one for one in free if one not in known)] = value
    return given
