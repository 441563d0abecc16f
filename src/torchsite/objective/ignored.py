"""Ignored regions: right for the right reasons (Ross et al. 2017), in evidence instead of gradients.

    L_ignored = mean_i Σ_u R(u) |e_i(u; x)|              in every judged view, R moved as the picture is

e_i(u; x) is the evidence of class i at cell u, as the model shows it; R is the share of the cell that lies in
a region. The term alone could be met by evidence that stands beside its cause, since features see more than
one cell. So no picture is shown with its region: a filling stands there, and in half of the pictures, of any
class, what stands in a region of another. Pictures that have none get the place of another's, so that neither
what is pasted nor the filling tells a class.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from torchsite.data import Dataset
from torchsite.data.margins import centre
from torchsite.errors import ConfigError
from torchsite.model import SITE
from torchsite.objective.additive import NEUTRAL, Evidence
from torchsite.objective.batch import Batch, Draws, Rows, Share
from torchsite.objective.term import Found, MapKind, Memory, Seen, Step, Term, own_and_all, shares_shown
from torchsite.shapes import Heatmaps, Images, Masks
from torchsite.transforms.fill import Black, OneOf, as_fill

FILLS = tuple(as_fill(name) for name in NEUTRAL)
MOST = 0.25  # of a picture: larger regions are filled where they are, and neither pasted nor hidden elsewhere


@dataclass(frozen=True, kw_only=True)
class IgnoredRegions(Term, name="ignored_regions"):
    """No evidence, of any class and of the picture's own, inside the regions of the training pictures."""

    def memory(self, model: SITE, data: Dataset) -> None:
        """Nothing; fails for data without regions, and for regions that leave nothing of a picture."""
        del model
        if data.regions is None or not len(data.with_regions):
            raise ConfigError(
                f"ignored_regions: no picture of {data.title} has a region: give some with `ignore`, or set "
                "`regions` of the data"
            )
        if n := int(data.regions.flatten(1).all(1).sum()):
            raise ConfigError(f"ignored_regions: the regions cover {n} pictures of {data.title} wholly")

    def loss(self, step: Step, memory: Memory | None) -> Found:
        """The mean over the judged views."""
        del memory
        losses: list[Tensor] = []
        maps: MapKind = "relative" if step.model.config.zero_sum else "plain"
        for seen in step.judged:
            evidence = seen.evidence(maps)
            inside = shares_shown(seen_regions(seen, step.batch), evidence)
            losses.append(own_and_all(evidence_inside(evidence, inside), step.batch.labels[: len(seen)]))
        return Found(torch.stack(losses).mean())


def evidence_inside(evidence: Evidence, inside: Heatmaps) -> Float[Tensor, "batch classes"]:
    """Σ_u R(u) |e_i(u)|: what the regions could add to each logit, or take away."""
    return (inside[:, None] * evidence.abs()).sum((-2, -1))


def seen_regions(seen: Seen, batch: Batch) -> Masks:
    """The regions in a view, moved as its pictures are."""
    assert batch.regions is not None
    kept = batch.regions[:, None].to(batch.images)
    images = centre(kept, (batch.images.shape[-2], batch.images.shape[-1]))
    if not seen.view.pose_stream:
        return images[: len(seen), 0] > 0.5
    marked = replace(batch, images=images, larger=None if batch.larger is None else kept)
    return seen.view.posed(marked, seen.pose, Black(), batch.draws.rng("regions"))[:, 0] > 0.5


def donor_rows(data: Dataset, draws: Draws, share: Share) -> Rows:
    """For each picture of a share one that has a region, of any class; the first one where there is none."""
    known = data.with_regions if len(data.with_regions) else torch.zeros(1, dtype=torch.int64)
    return known[torch.randint(len(known), (draws.n,), generator=draws.rng("donors"))[share.rows(draws.n)]]


def without_regions(
    images: Images, own: Masks, donors: Images, theirs: Masks, draws: Draws, share: Share
) -> tuple[Images, Masks]:
    """Pictures whose regions are filled, some with a region of a donor in them; and where that is.

    The filling, and whether the donor's region is pasted, are drawn for all pictures of the global batch.
    """
    rng = draws.rng("ignored")
    ways = torch.randint(len(FILLS), (draws.n,), generator=rng)[share.rows(draws.n)].to(images.device)
    pasted = (torch.rand(draws.n, generator=rng) < 0.5)[share.rows(draws.n)].to(images.device)
    theirs = theirs & (theirs.float().mean((1, 2), keepdim=True) <= MOST)
    hidden = torch.where(own.any((1, 2), keepdim=True), own, theirs)
    shown = OneOf(FILLS, ways).replace(images, ~hidden)
    theirs = theirs & pasted[:, None, None]
    return torch.where(theirs[:, None], donors, shown), hidden | theirs
