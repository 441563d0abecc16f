"""The whole objective of a model as one module: a batch in, its losses out.

SITE minimises its classification loss and the weighted terms. The black box minimises its classification loss
in the same views, whatever the terms: it has no evidence that they could speak of. Pictures of which blocks
are hidden are an augmentation to it; what is hidden to ask for silence there, it sees whole.
"""

import abc
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from torchsite.data import Dataset
from torchsite.model import SITE, ImageClassifier
from torchsite.model.base import dtype_of
from torchsite.objective.batch import Batch
from torchsite.objective.classification import ClassWeights, classification_loss, multi_label_loss
from torchsite.objective.targets import to_unit
from torchsite.objective.term import Memory, Step, Term
from torchsite.objective.views import View, fill_corners, join_views
from torchsite.shapes import Features, Logits, MultiHot, Scalar


class Outcome(NamedTuple):
    """`losses["loss"]` is minimised, the rest is worth watching; `features` are what memories learn from."""

    losses: dict[str, Tensor]
    features: Features | None = None


class Objective(nn.Module, abc.ABC):
    """What is minimised, and in which views of the pictures; its state is the model's and the memories'."""

    model: ImageClassifier
    views: tuple[View, ...]
    class_weights: Tensor | None
    multi_hot: Tensor | None
    label_smoothing: float

    @abc.abstractmethod
    def forward(self, batch: Batch) -> Outcome:
        """The losses of a batch, or of a part of one."""

    def classification(self, logits: Logits, batch: Batch, counts: Sequence[int]) -> Scalar:
        """The classification loss of views that show the first `counts` pictures of the batch each."""
        if self.multi_hot is None:
            labels = torch.cat([batch.labels[:n] for n in counts])
            return classification_loss(logits, labels, self.label_smoothing, self.class_weights)
        multi_hot = self.multi_hot[batch.rows.to(self.multi_hot.device)]
        return multi_label_loss(logits, torch.cat([multi_hot[:n] for n in counts]), self.class_weights)

    def right(self, logits: Logits, batch: Batch, counts: Sequence[int]) -> Scalar:
        """The share of right answers in these views."""
        if self.multi_hot is None:
            return (logits.argmax(1) == torch.cat([batch.labels[:n] for n in counts])).float().mean()
        multi_hot = self.multi_hot[batch.rows.to(self.multi_hot.device)]
        return ((logits > 0) == torch.cat([multi_hot[:n] for n in counts])).float().mean()

    def learn(self, batch: Batch, features: Features | None) -> None:
        """Let the memories take note of a whole step."""
        del batch, features


class SiteObjective(Objective):
    """CE(logits, y) + Σ weight · term."""

    model: SITE

    def __init__(
        self,
        model: SITE,
        data: Dataset,
        terms: Sequence[Term],
        *,
        views: Sequence[View] = (),
        corners: tuple[str, ...] = ("black",),
        label_smoothing: float = 0.0,
        class_weights: ClassWeights | None = None,
        multi_hot: MultiHot | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("class_weights", class_weights, persistent=False)
        self.register_buffer("multi_hot", multi_hot, persistent=False)
        for term in terms:
            term.check(model)
        self.model, self.terms, self.label_smoothing = model, tuple(terms), label_smoothing
        self.views = fill_corners(views_of_site(terms, views), corners)
        memories = {str(number): term.memory(model, data) for number, term in enumerate(terms)}
        kept = {number: memory for number, memory in memories.items() if memory is not None}
        self.memories = nn.ModuleDict(kept).to(dtype_of(model))
        self.run = model.run

    def forward(self, batch: Batch) -> Outcome:
        """One pass over all views; then the classification loss, then every term that counts at this step."""
        step = Step(batch, self.model, self.run(batch.pictures()))
        counts = [len(one) for one in step.judged]
        n = sum(counts)
        logits = step.run.logits[:n]
        stages = [self.classification(stage[:n], batch, counts) for stage in step.run.stages]
        loss = torch.stack(stages).sum()
        losses = {"classification": stages[-1]}
        for number, term in enumerate(self.terms):
            if term.counts(batch.draws):
                found = term.loss(step, self._memory(number))
                loss = loss + term.weight * found.loss
                losses |= numbered({term.name: found.loss, **found.watched}, losses)
        losses |= {
            "accuracy": self.right(logits[: len(batch)], batch, [len(batch)]),
            "|w|": step.run.size_of_prototypes,
            "|z|": step.run.features.detach().abs().mean(),
        }
        return Outcome({"loss": loss} | losses, step.run.features[: len(batch)].detach())

    def learn(self, batch: Batch, features: Features | None) -> None:
        """What was seen in the first view."""
        assert features is not None
        for memory in self.memories.values():
            assert isinstance(memory, Memory)
            memory.learn(to_unit(features, self.model.bce_slope), batch.rows, batch.labels, batch.poses[0])

    def _memory(self, number: int) -> Memory | None:
        if str(number) not in self.memories:
            return None
        memory = self.memories[str(number)]
        assert isinstance(memory, Memory)
        return memory


class BlackBoxObjective(Objective):
    """Cross-entropy in the views that SITE sees: the comparison with the same budget."""

    def __init__(
        self,
        model: ImageClassifier,
        terms: Sequence[Term] = (),
        *,
        views: Sequence[View] = (),
        corners: tuple[str, ...] = ("black",),
        label_smoothing: float = 0.0,
        class_weights: ClassWeights | None = None,
        multi_hot: MultiHot | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("class_weights", class_weights, persistent=False)
        self.register_buffer("multi_hot", multi_hot, persistent=False)
        self.model, self.label_smoothing = model, label_smoothing
        self.views = fill_corners(views_of_black_box(terms, views), corners)
        self.run = model.forward

    def forward(self, batch: Batch) -> Outcome:
        """The classification loss."""
        logits = self.run(batch.pictures()).float()
        loss = self.classification(logits, batch, batch.counts)
        return Outcome({"loss": loss, "accuracy": self.right(logits, batch, batch.counts)})


def views_of_site(terms: Sequence[Term], views: Sequence[View] = ()) -> tuple[View, ...]:
    """These views, and those that the terms compare, each once."""
    return join_views([*views, *(view for term in terms for view in term.views())])


def views_of_black_box(terms: Sequence[Term], views: Sequence[View] = ()) -> tuple[View, ...]:
    """The same, as a model without evidence is shown them."""
    seen = (view.for_black_box() for view in views_of_site(terms, views))
    return tuple(view for view in seen if view is not None)


def numbered(new: dict[str, Tensor], known: dict[str, Tensor]) -> dict[str, Tensor]:
    """What several terms watch under one name gets a number, from the second on."""
    given = {}
    for name, value in new.items():
        free = (name if i == 1 else f"{name} {i}" for i in range(1, len(known) + 2))
        given[next(one for one in free if one not in known)] = value
    return given
