"""The contract of a term of the objective.

    L = CE(logits, y) + Σ_t weight_t · L_t                                         (equation obj)

A term is a frozen value: its weight, its options, and when it counts. Written as a class with a name, it can
stand in recipes at once:

    @dataclass(frozen=True, kw_only=True)
    class Grey(Term, name="grey"):
        def views(self):        # what it needs to see, beside what the others do
            return (GREY,)      # a view of its own, with `judged=False`
        def loss(self, step, memory):
            return Found(step.view("grey").run.logits.square().mean())

Its input is in `Step`: the batch, its views, the model and its pass over all of them. Random
numbers come from `step.draws.rng(name)` (or, for views, from the `draws` that they are given): a function of
the seed, the name and the step. What a term must remember from step to step is a `Memory`, which is
checkpointed.
"""

import abc
import functools
import itertools
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from torchsite.configs import Tagged, check_bounds
from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.model import SITE
from torchsite.model.site import Forward
from torchsite.objective.batch import Batch, Draws, Rows
from torchsite.objective.views import View
from torchsite.shapes import Features, Heatmaps, Labels, Maps, Masks, Scalar
from torchsite.transforms import Transform

MapKind = Literal["plain", "relative"]


class Found(NamedTuple):
    """A term's loss, before its weight, and what else is worth watching."""

    loss: Scalar
    watched: dict[str, Tensor] = {}  # noqa: RUF012 - never changed


@dataclass(frozen=True, eq=False)
class Seen:
    """One view of the pictures at hand, and what the model made of it."""

    view: View
    pose: Transform
    all_poses: Transform
    visible: Masks | None
    whole: Forward
    rows: slice

    def __len__(self) -> int:
        return self.rows.stop - self.rows.start

    @property
    def run(self) -> Forward:
        """What the model made of the pictures in this view: these rows of its pass over all views."""
        return rows_of(self.whole, self.rows)

    def evidence(self, maps: MapKind) -> Maps:
        """The evidence of all classes, as it is or relative to their mean."""
        return (self.run.relative() if maps == "relative" else self.run).evidence


@dataclass(frozen=True, eq=False)
class Step:
    """The input of a term: the pictures, the model, and its pass over all views."""

    batch: Batch
    model: SITE
    run: Forward

    @property
    def draws(self) -> Draws:
        """The random numbers of the step."""
        return self.batch.draws

    @functools.cached_property
    def seen(self) -> tuple[Seen, ...]:
        """The views in the order of the batch, each with its part of the pass."""
        batch, ends = self.batch, list(itertools.accumulate(self.batch.counts))
        views = zip(batch.shown, batch.poses, batch.visible, batch.counts, ends, strict=True)
        return tuple(
            Seen(one.view, pose, one.all_poses, mask, self.run, slice(end - n, end))
            for one, pose, mask, n, end in views
        )

    @property
    def judged(self) -> tuple[Seen, ...]:
        """The views in which the model is judged."""
        return tuple(one for one in self.seen if one.view.judged)

    def view(self, name: str) -> Seen:
        """The view of this name, one of the term's `views`."""
        return next(one for one in self.seen if one.view.name == name)


class Memory(nn.Module):
    """What a term keeps from step to step, in buffers."""

    def learn(self, features: Features, rows: Rows, labels: Labels, transform: Transform) -> None:
        """Take note of a whole step: the features in the first view, in [0, 1], and that view's poses."""
        del features, rows, labels, transform


@dataclass(frozen=True, kw_only=True)
class Term(Tagged, abc.ABC):
    """One term: `weight` times its loss, from the share `start` of the training to the share `end`."""

    tags: ClassVar[dict[str, type[Any]]] = {}

    weight: float = 1.0
    start: float = 0.0
    end: float = 1.0

    def __post_init__(self) -> None:
        check_bounds(self, "[0, ∞)", "weight")
        if not 0 <= self.start < self.end <= 1:
            raise ConfigError(
                f"{self.name}: expected shares of the training, 0 ≤ start < end ≤ 1, "
                f"got start = {self.start} and end = {self.end}"
            )

    @abc.abstractmethod
    def loss(self, step: Step, memory: Memory | None) -> Found:
        """The loss of a batch; means over pictures, so that equal parts of a batch average to the whole."""

    def views(self) -> tuple[View, ...]:
        """What must be seen of each picture for this term, whatever the others need."""
        return ()

    def n_asked(self, batch: int) -> int:
        """The number of forward passes beside the views of a batch, without gradients."""
        del batch
        return 0

    def memory(self, model: SITE, data: Dataset) -> Memory | None:
        """What is kept from step to step; nothing by default."""
        del model, data
        return None

    def check(self, model: SITE) -> None:
        """Raise a `ConfigError` if the model lacks what the term needs."""
        del model

    def counts(self, draws: Draws) -> bool:
        """Whether the term is part of the objective at this step."""
        return self.start * draws.n_steps <= draws.position < self.end * draws.n_steps


def rows_of(run: Forward, rows: slice) -> Forward:
    """Some pictures of a pass."""
    values = {part.name: getattr(run, part.name) for part in fields(run)}
    maps = {name: value for name, value in values.items() if isinstance(value, Tensor) and value.ndim}
    return replace(run, **{name: value[rows] for name, value in maps.items()})


def own_and_all(losses: Float[Tensor, "batch classes"], labels: Labels) -> Scalar:
    """One half for the picture's own class, whose map is shown, one for the mean of all classes."""
    rows = torch.arange(len(losses), device=losses.device)
    return (losses.mean() + losses[rows, labels].mean()) / 2


def shares_shown(visible: Masks, like: Maps) -> Heatmaps:
    """The share of each cell's pixels that is shown, for maps like these."""
    return F.adaptive_avg_pool2d(visible.to(like), (like.shape[-2], like.shape[-1]))
