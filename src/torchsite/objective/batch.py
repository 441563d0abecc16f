"""One step's pictures and their views: a function of seed and step, however the work is divided.

Everything random is drawn for the whole global batch. A process of several, and a part of a batch whose
gradients are accumulated, take their rows of it; together they see what one process would see at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Int64
from torch import Tensor

from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Images, Labels, Masks, Size
from torchsite.transforms import Transform, TransformFamily

if TYPE_CHECKING:
    from torchsite.objective.views import View

Rows = Int64[Tensor, " batch"]


@dataclass(frozen=True)
class Share:
    """What one process works on at once: a part of the global batch, and of that every `ranks`-th row.

    A part is the same for any number of ranks, which matters to statistics of batches.
    """

    rank: int = 0
    ranks: int = 1
    part: int = 0
    parts: int = 1

    @property
    def of(self) -> int:
        """How many shares make a global batch; all are of one size."""
        return self.ranks * self.parts

    @property
    def is_last_part(self) -> bool:
        """Whether the gradients of the step are complete with this part."""
        return self.part + 1 == self.parts

    def rows(self, n: int) -> slice:
        """These rows of anything that has a row for each of the `n` pictures of a global batch."""
        start, stop = (n * part // self.parts for part in (self.part, self.part + 1))
        return slice(start + self.rank, stop, self.ranks)


@dataclass(frozen=True)
class Draws:
    """The random numbers of one step: a stream of its own for every name, the same on all ranks.

    `n` is the number of pictures in the global batch, for all of which is drawn. `n_steps` is the length of
    the training, and `position` the place in it: the step, or further on where a clock is ahead of the steps.
    """

    seed: int
    step: int
    n: int
    n_steps: int = 1
    clock: float = 0.0  # the share of the training's time that is used

    @property
    def position(self) -> float:
        """The steps done, or as many as the share of the time that is used would make, if that is more."""
        return max(self.step, self.clock * self.n_steps)

    def rng(self, name: str) -> Rng:
        """The stream of this name at this step, from its beginning at each call."""
        return make_rng(self.seed, name, self.step, 0)


@dataclass(frozen=True, eq=False)
class Shown:
    """One view of a global batch: the poses, and what is visible, of all its pictures."""

    view: "View"
    all_poses: Transform
    all_visible: Masks | None = None


@dataclass(frozen=True, eq=False)
class Batch:
    """The pictures that one process works on at once, upright, and the views in which the model sees them."""

    rows: Rows
    images: Images
    labels: Labels
    share: Share
    draws: Draws
    shown: tuple[Shown, ...]
    larger: Images | None = None  # what stands around the pictures, which are its centres
    regions: Masks | None = None  # what is to be ignored in the pictures as they are kept

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many of these pictures, the first ones, each view has."""
        return tuple(one.view.n_shown(len(self)) for one in self.shown)

    @property
    def poses(self) -> tuple[Transform, ...]:
        """The transforms of these pictures, one for each view."""
        views = zip(self.shown, self.counts, strict=True)
        return tuple(one.all_poses[self.share.rows(len(one.all_poses))][:n] for one, n in views)

    @property
    def visible(self) -> tuple[Masks | None, ...]:
        """What is seen of these pictures in each view."""
        masks = [(one.all_visible, n) for one, n in zip(self.shown, self.counts, strict=True)]
        return tuple(None if mask is None else mask[self.share.rows(len(mask))][:n] for mask, n in masks)

    def pictures(self) -> Images:
        """The pictures in all their views, view by view."""
        views = zip(self.shown, self.poses, self.visible, strict=True)
        return torch.cat([one.view.show(self, pose, mask) for one, pose, mask in views])

    def parts(self, n: int) -> Iterator["Batch"]:
        """The batch in `n` parts of equal size, one after the other."""
        for i in range(n):
            rows = slice(len(self) * i // n, len(self) * (i + 1) // n)
            yield replace(
                self,
                rows=self.rows[rows],
                images=self.images[rows],
                labels=self.labels[rows],
                larger=None if self.larger is None else self.larger[rows],
                regions=None if self.regions is None else self.regions[rows],
                share=replace(self.share, part=i, parts=n),
            )


def show_batch(
    rows: Rows,
    images: Images,
    labels: Labels,
    views: Sequence["View"],
    draws: Draws,
    family: TransformFamily,
    share: Share = Share(),  # noqa: B008 - a frozen value
    larger: Images | None = None,
    regions: Masks | None = None,
) -> Batch:
    """The pictures of one share with the poses and masks that the step draws for their views."""
    size: Size = (images.shape[-2], images.shape[-1])
    shown = []
    for view in views:
        mask = view.visible(draws, size)
        poses = view.poses(draws, family).to(images.device)
        shown.append(Shown(view, poses, None if mask is None else mask.to(images.device)))
    return Batch(rows, images, labels, share, draws, tuple(shown), larger, regions)
