"""Views: the ways in which every picture of a batch is shown, derived from what the terms compare.

A view is a value: a name, the stream from which its poses are drawn, and whether the model is judged by what
it answers there (classification, prototypes). A term that needs to see something else derives a view of its
own: `visible` hides parts, `show` fills corners or shows another picture altogether. A view may be of a part
of the pictures only, which costs less.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from torchsite.errors import ConfigError, did_you_mean
from torchsite.objective.batch import Batch, Draws
from torchsite.randomness import Rng
from torchsite.shapes import Images, Masks, Size
from torchsite.transforms import AffineTransform, Transform, TransformFamily
from torchsite.transforms.fill import Fill, OneOf, as_fill

ASPECT = 2.0  # no side of a rectangle is more than this many times the other, in shares of the frame
ViewName = Literal["upright", "posed"]


@dataclass(frozen=True)
class View:
    """Each picture in a random pose of the stream `pose_stream`; without one, as it is.

    `fill` names what stands where a picture is not seen (`transforms/fill.py`); of several, each picture gets
    one at random. `portion` is the part of the pictures that is seen so: the first ones of every batch.
    """

    name: str
    pose_stream: str = ""
    judged: bool = True
    fill: str | tuple[str, ...] = "black"
    portion: float = 1.0

    def n_shown(self, n: int) -> int:
        """How many of `n` pictures stand in this view; at least one."""
        return max(1, round(self.portion * n))

    def poses(self, draws: Draws, family: TransformFamily) -> Transform:
        """One transform for each picture of the global batch."""
        if not self.pose_stream:
            return AffineTransform.identity(draws.n)
        return family.sample(draws.n, rng=draws.rng(self.pose_stream))

    def visible(self, draws: Draws, size: Size) -> Masks | None:
        """What is seen of each picture of the global batch; None: all of it."""
        del draws, size
        return None

    def show(self, batch: Batch, pose: Transform, visible: Masks | None) -> Images:
        """The first pictures of a share, given their poses and masks; corners and what is hidden are filled.

        Whoever draws more here draws for all `draws.n` pictures and takes `share.rows(draws.n)` of it. Random
        fillings do not: they draw for each share, so that runs of several processes differ from those of one.
        """
        fill, rng = self.filling(self.fill, batch, len(pose), "way")
        shown = self.posed(batch, pose, fill, rng) if self.pose_stream else batch.images[: len(pose)]
        return shown if visible is None else fill.replace(shown, visible, rng=rng)

    def posed(self, batch: Batch, pose: Transform, fill: Fill, rng: Rng) -> Images:
        """The pictures in their poses, cut from the larger ones around them if there are any."""
        images = batch.images[: len(pose)]
        if batch.larger is None:
            return pose(images, fill=fill, rng=rng)
        size = (images.shape[-2], images.shape[-1])
        return pose.cropped_from(batch.larger[: len(pose)], size, fill=fill, rng=rng)

    def filling(self, names: str | tuple[str, ...], batch: Batch, n: int, stream: str) -> tuple[Fill, Rng]:
        """For each of `n` pictures one of the fillings, drawn for the global batch, and random numbers."""
        fills = [as_fill(name) for name in ((names,) if isinstance(names, str) else names)]
        rng = batch.draws.rng(f"{self.name} filling {batch.share.rank} {batch.share.part}")
        if len(fills) == 1:
            return fills[0], rng
        drawn = torch.randint(
            len(fills), (batch.draws.n,), generator=batch.draws.rng(f"{self.name} {stream}")
        )
        return OneOf(tuple(fills), drawn[batch.share.rows(batch.draws.n)][:n].to(batch.images.device)), rng

    def plain(self) -> "View":
        """The same view with nothing hidden: the one of its name that any term can use."""
        return self

    def for_black_box(self) -> "View | None":
        """What a model whose evidence is not looked at sees instead; None: nothing."""
        return self.plain() if self.judged else None


UPRIGHT = View("upright")
POSED = View("posed", "pose")
VIEWS: dict[str, View] = {view.name: view for view in (UPRIGHT, POSED)}


@dataclass(frozen=True)
class HiddenView(View):
    """The posed view, with a rectangle of the share `hidden` blacked out of each picture."""

    hidden: float = 0.25

    def visible(self, draws: Draws, size: Size) -> Masks:
        """All but the rectangle."""
        return what_is_shown(draws.n, size, self.hidden, draws.rng("hidden"))

    def plain(self) -> View:
        """The posed view."""
        return VIEWS[self.name]


def join_views(wanted: Iterable[View]) -> tuple[View, ...]:
    """Each view once, in a fixed order: upright, posed, then the terms' own; judged ones first.

    A view that hides something stands in for the plain one of its name; two that differ cannot be one.
    """
    found: dict[str, View] = {}
    for view in wanted:
        known = found.setdefault(view.name, view)
        if known == view.plain():
            found[view.name] = view
        elif view not in (known, known.plain()):
            raise ConfigError(f"terms: two terms show the view {view.name!r} differently: {known} and {view}")
    order = {name: place for place, name in enumerate(VIEWS)}
    return tuple(sorted(found.values(), key=lambda view: (not view.judged, order.get(view.name, len(order)))))


def fill_corners(views: Iterable[View], corners: tuple[str, ...]) -> tuple[View, ...]:
    """The views with these fillings, one at random for each picture, around every posed picture."""
    fill = corners[0] if len(corners) == 1 else corners
    return tuple(replace(view, fill=fill) if view.pose_stream else view for view in views)


def check_fills(field: str, names: Sequence[str], allowed: Collection[str]) -> None:
    """Raise a `ConfigError` unless there is a filling, and all are among those that are allowed."""
    if not names:
        raise ConfigError(f"{field}: expected at least one filling of {', '.join(allowed)}, got none")
    for name in names:
        if name not in allowed:
            raise ConfigError(f"{field}: no filling {name!r} here: {did_you_mean(name, allowed)}")


def what_is_shown(n: int, size: Size, hidden: float, rng: Rng) -> Masks:
    """True where each picture is seen: all but one rectangle of the share `hidden`, wherever it fits."""
    stretch = ASPECT ** (torch.rand(n, generator=rng) - 0.5)
    places = torch.rand(2, n, generator=rng)
    seen = torch.ones(n, *size, dtype=torch.bool)
    if not hidden:
        return seen
    inside = []
    for length, side, place in zip(size, (stretch, 1 / stretch), places, strict=True):
        span = (math.sqrt(hidden) * side).clamp(max=1) * length
        first = place * (length - span)
        cells = torch.arange(length) + 0.5
        inside.append((cells >= first[:, None]) & (cells < (first + span)[:, None]))
    rows, cols = inside
    return seen & ~(rows[:, :, None] & cols[:, None, :])
