"""What a part of pictures does: hide it, paste it into pictures of other classes, and ask the model.

    r_c           = logit_c - mean over all classes
    hiding(x)     = r_c(x) - r_c(x with the part filled)          two fillings: mean colour, blur
    at random(x)  = the same for a part of that shape, moved to another place of x
    pasting(x′)   = r_c(x′ with the part of x at its place) - r_c(x′),      x′ of another class
    at random(x′) = the same for what stands elsewhere in x, put at the same place of x′

Such pictures are unlike any other, so no figure is given without that of the random part. A part is moved
around the edges of the picture, to the one of a few random places that overlaps least with itself.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from torchsite.data import Dataset, to_float
from torchsite.evaluation.answers import wilson
from torchsite.evaluation.pieces import ReadFeatures, features_of
from torchsite.metrics import Estimate, Explainer
from torchsite.metrics.estimate import N_RESAMPLES, estimate, ratio, resample_weights
from torchsite.metrics.patch_deletion import FILLINGS, relative_logits
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Heatmaps, Images, Labels, Logits, Masks, Scores
from torchsite.transforms import as_fill

N_PLACES = 8  # from which the random one is chosen


@dataclass(frozen=True, eq=False)
class Group:
    """A part of some pictures of one class: the numbers of the pictures, and a mask for each."""

    label: int
    kind: str
    rows: Labels
    masks: Masks

    def first(self, n: int) -> "Group":
        """The group in at most `n` of its pictures."""
        return Group(self.label, self.kind, self.rows[:n], self.masks[:n])


class Hiding(NamedTuple):
    """How far the relative logit falls, which share of answers turns; the same for a random part."""

    falls: Estimate
    random_falls: Estimate
    more: Estimate
    turns: Estimate
    random_turns: Estimate


class Pasting(NamedTuple):
    """How far the relative logit rises, and which share become the class; the same for random parts."""

    rises: Estimate
    random_rises: Estimate
    turns: Estimate
    random_turns: Estimate
    more: Estimate


class Shown(NamedTuple):
    """The share of the evidence on what was pasted, and the share of the picture that it is."""

    evidence: Estimate
    area: Estimate


@dataclass(frozen=True, eq=False)
class Asked:
    """Pictures, what a model answers to them, and who draws its maps."""

    explainer: Explainer
    data: Dataset
    batch_size: int = 64
    seed: int = 0

    @cached_property
    def device(self) -> torch.device:
        """Where the model is."""
        return next((p.device for p in self.explainer.require_model().parameters()), torch.device("cpu"))

    @cached_property
    def logits(self) -> Logits:
        """What the model says to the pictures."""
        parts = torch.arange(len(self.data)).split(self.batch_size)
        return torch.cat([self.answers(self.images(rows)) for rows in parts])

    @cached_property
    def features(self) -> ReadFeatures:
        """z of pictures."""
        return features_of(self.explainer.require_model(), self.images(torch.arange(1)))

    def images(self, rows: Labels) -> Images:
        """Some of the pictures."""
        return to_float(self.data.images[rows].to(self.device))

    def answers(self, images: Images) -> Logits:
        """What the model says to any pictures."""
        parts = images.split(self.batch_size)
        return torch.cat([self.explainer.logits(part).float().cpu() for part in parts])

    def maps(self, images: Images, label: int) -> Heatmaps:
        """The positive evidence for a class."""
        parts = images.split(self.batch_size)
        maps = [self.explainer(part, torch.full((len(part),), label, device=part.device)) for part in parts]
        return torch.cat(maps).clamp_min(0).cpu()

    def strangers(self, label: int, n: int) -> Labels:
        """At most `n` pictures of other classes that the model does not take for this one."""
        other = ((self.data.labels != label) & (self.logits.argmax(1) != label)).nonzero()[:, 0]
        return other[torch.randperm(len(other), generator=make_rng(self.seed, "strangers", label))[:n]]


@dataclass(frozen=True, eq=False)
class Trial:
    """A group in some pictures, and pictures of other classes, into which its pictures take turns."""

    asked: Asked
    group: Group
    strangers: Labels

    def hide(self) -> dict[str, Hiding]:
        """What hiding the group does, by filling."""
        label, images = self.group.label, self.asked.images(self.group.rows)
        before = self.asked.logits[self.group.rows]
        seen = before.argmax(1) == label
        found = {}
        for name in FILLINGS:
            after, moved = (
                self.asked.answers(as_fill(name).replace(images, ~masks.to(images.device)))
                for masks in (self.group.masks, self._moved[0])
            )
            whole, *rest = (relative_logit(logits, label) for logits in (before, after, moved))
            falls, random_falls = (whole - part for part in rest)
            turns = (share(logits.argmax(1)[seen] != label) for logits in (after, moved))
            found[name] = Hiding(mean(falls), mean(random_falls), mean(falls - random_falls), *turns)
        return found

    def paste(self) -> Pasting:
        """What the group does in pictures of other classes."""
        label, before = self.group.label, self.asked.logits[self.strangers]
        after, moved = (self.asked.answers(self._pasted(how)) for how in ("as it is", "something else"))
        start, *rest = (relative_logit(logits, label) for logits in (before, after, moved))
        turned, random_turned = (logits.argmax(1) == label for logits in (after, moved))
        more = mean(turned.double() - random_turned.double())
        rises, random_rises = (mean(part - start) for part in rest)
        return Pasting(rises, random_rises, share(turned), share(random_turned), more)

    def evidence_found(self) -> Shown:
        """How much of the evidence for the class stands on what was pasted."""
        maps, masks = (
            self.asked.maps(self._pasted("as it is"), self.group.label),
            self.group.masks[self._turn],
        )
        inside = (maps * masks).double().sum((1, 2))
        return Shown(quotient(inside, maps.double().sum((1, 2))), mean(masks.double().mean((1, 2))))

    def evidence_in_others(self) -> Estimate:
        """The evidence for the class at this place in pictures of others, as a share of that in its own."""
        group = self.group.first(len(self.strangers))
        own, others = (
            (self.asked.maps(self.asked.images(rows), group.label) * group.masks).double().sum((1, 2))
            for rows in (group.rows, self.strangers[: len(group.rows)])
        )
        return quotient(others, own)

    @cached_property
    def _moved(self) -> tuple[Masks, list[tuple[int, int]]]:
        return elsewhere(self.group.masks, make_rng(self.asked.seed, "elsewhere", self.group.label))

    @property
    def _turn(self) -> Labels:
        return torch.arange(len(self.strangers)) % len(self.group.rows)

    def _pasted(self, how: Literal["as it is", "something else"]) -> Images:
        """The strangers with the group in them, or with what stands elsewhere in its pictures."""
        donors = self.asked.images(self.group.rows)
        if how == "something else":
            offsets = self._moved[1]
            donors = torch.stack([rolled(x, (-y, -z)) for x, (y, z) in zip(donors, offsets, strict=True)])
        masks = self.group.masks[self._turn][:, None].to(donors.device)
        return torch.where(masks, donors[self._turn], self.asked.images(self.strangers))


def elsewhere(masks: Masks, rng: Rng) -> tuple[Masks, list[tuple[int, int]]]:
    """Each mask at a random other place, and by how many rows and columns it was moved around the edges."""
    moved, offsets = [], []
    for mask in masks:
        tried = torch.stack([torch.randint(n, (N_PLACES,), generator=rng) for n in mask.shape], 1).tolist()
        overlaps = [int((rolled(mask, place) & mask).sum()) for place in tried]
        down, across = tried[overlaps.index(min(overlaps))]
        offsets.append((down, across))
        moved.append(rolled(mask, (down, across)))
    return torch.stack(moved), offsets


def rolled(image: Tensor, offset: tuple[int, int]) -> Tensor:
    """The picture or mask moved around its edges."""
    return image.roll(offset, (-2, -1))


def relative_logit(logits: Logits, label: int) -> Scores:
    """logit_c - mean over classes."""
    return relative_logits(logits, torch.full((len(logits),), label))


def mean(values: Scores) -> Estimate:
    """The mean over pictures with its interval."""
    return quotient(values, torch.ones_like(values))


def quotient(above: Scores, below: Scores) -> Estimate:
    """Σ above / Σ below over pictures, with its interval; no number where there is nothing below."""
    weights = _weights(len(above))
    return estimate(ratio(weights @ above.double(), weights @ below.double()))


def share(hits: Tensor) -> Estimate:
    """The share of pictures that are hits, with its interval."""
    return wilson(int(hits.sum()), len(hits))


@cache
def _weights(n: int) -> Tensor:
    return resample_weights(torch.arange(n), N_RESAMPLES, 0)
