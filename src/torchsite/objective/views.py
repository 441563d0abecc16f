"""Views: the ways in which every picture of a batch is shown, derived from what the terms compare.

A view is a value: a name, the stream from which its poses are drawn, and whether the model is judged by what
it answers there (classification, prototypes). A term that needs to see something else derives a view of its
own: `visible` hides parts, `show` fills corners or shows another picture altogether.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch

from torchsite.errors import ConfigError
from torchsite.objective.batch import Draws, Share
from torchsite.randomness import Rng
from torchsite.shapes import Images, Masks, Size
from torchsite.transforms import AffineTransform, Transform, TransformFamily
from torchsite.transforms.fill import as_fill

ASPECT = 2.0  # no side of a rectangle is more than this many times the other, in shares of the frame
ViewName = Literal["upright", "second_pose", "posed"]


@dataclass(frozen=True)
class View:
    """Each picture in a random pose of the stream `pose_stream`; without one, as it is.

    `fill` names what stands where a picture is not seen (`transforms/fill.py`).
    """

    name: str
    pose_stream: str = ""
    judged: bool = True
    fill: str = "black"

    def poses(self, draws: Draws, family: TransformFamily) -> Transform:
        """One transform for each picture of the global batch."""
        if not self.pose_stream:
            return AffineTransform.identity(draws.n)
        return family.sample(draws.n, rng=draws.rng(self.pose_stream))

    def visible(self, draws: Draws, size: Size) -> Masks | None:
        """What is seen of each picture of the global batch; None: all of it."""
        del draws, size
        return None

    def show(
        self, images: Images, pose: Transform, visible: Masks | None, draws: Draws, share: Share
    ) -> Images:
        """The pictures of one share, given their poses and masks; corners and what is hidden are filled.

        Whoever draws more here draws for all `draws.n` pictures and takes `share.rows(draws.n)` of it. Random
        fillings do not: they draw for each share, so that runs of several processes differ from those of one.
        """
        fill, rng = as_fill(self.fill), draws.rng(f"{self.name} filling {share.rank} {share.part}")
        posed = pose(images, fill=fill, rng=rng)
        return posed if visible is None else fill.replace(posed, visible, rng=rng)

    def plain(self) -> "View":
        """The same view with nothing hidden, for a model whose evidence is not looked at."""
        return self


UPRIGHT = View("upright")
SECOND_POSE = View("second_pose", "second pose")
POSED = View("posed", "pose")
VIEWS: dict[str, View] = {view.name: view for view in (UPRIGHT, SECOND_POSE, POSED)}


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
