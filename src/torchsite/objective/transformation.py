"""The transformation term: prototypes of a posed picture resemble its class, in that pose.

    L_trans = BCE(T⁻¹ G_i(F1(T x)), F1(x_i))                                       (equation l_trans)

is a mean over the elements that the picture covers. Binary cross-entropy is affine in its target, so the
expectation over x_i needs only the mean feature of class i:

    E[BCE(p, F1(x_i))] = BCE(p, E[F1(x_i)])                                        (closed form)

The targets are therefore an argument: class means, means of exemplars near to x, or single samples
(`targets.py`). Values to be compared lie in [0, 1]; raw prototypes r stand for σ(slope·r), where slope is 1
for sigmoid and 2 for tanh, since (tanh r + 1)/2 = σ(2r).
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from torchsite.configs import check_bounds
from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.model import SITE
from torchsite.objective.batch import Share
from torchsite.objective.targets import (
    Exemplars,
    FixedMeans,
    NearestExemplars,
    RunningMeans,
    SampledExemplars,
    Targets,
    TargetSource,
)
from torchsite.objective.term import Found, Memory, Step, Term
from torchsite.shapes import Maps, Masks, Prototypes, Scalar, Size
from torchsite.transforms import Transform

Warp = Literal["target", "prototype"]
LN2 = math.log(2)  # the loss of prototypes that say nothing, whatever the targets


@dataclass(frozen=True, kw_only=True)
class TransformationTerm(Term, name="transformation"):
    """Prototypes resemble their targets in every judged view.

    `targets` are the mean of each class; the mean of `n_exemplars` of the `n_nearest` pictures of the class
    that are nearest to x; or one random picture each (`sampled`). With `choose: best` the one of these
    exemplars that the prototype resembles most is the target instead of their mean: a prototype may settle
    for one, and need not be a blend. `unseen` says whether prototypes are free where the posed picture shows
    nothing, or are asked to be black there as well.
    """

    weight: float = 5.0
    targets: Literal["mean", "nearest", "sampled"] = "nearest"
    n_nearest: int = 16
    n_exemplars: int = 4
    choose: Literal["mean", "best"] = "mean"
    unseen: Literal["free", "black"] = "free"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bounds(self, "[1, ∞)", "n_nearest", "n_exemplars")
        if self.n_exemplars > self.n_nearest:
            raise ConfigError(
                f"transformation.n_exemplars: expected at most n_nearest = {self.n_nearest}, "
                f"got {self.n_exemplars}"
            )
        if self.choose == "best" and self.targets != "nearest":
            raise ConfigError(
                "transformation.choose: best chooses among the exemplars of targets: nearest, got "
                f"{self.targets}"
            )

    def memory(self, model: SITE, data: Dataset) -> TargetSource:
        """The source of the targets, which learns from every step."""
        if data.multi_hot is not None:
            raise ConfigError(
                "terms: transformation compares prototypes with pictures of one class, but several labels "
                "may be true of these: use equivariance or additive_evidence"
            )
        shape = None if model.pixels_are_features else model.feature_shape
        if self.targets == "nearest":
            return NearestExemplars(data, self.n_nearest, self.n_exemplars, shape, self.choose == "best")
        if self.targets == "sampled":
            return SampledExemplars(data, model)
        return FixedMeans(data) if shape is None else RunningMeans(len(data.classes), shape)

    def loss(self, step: Step, memory: Memory | None) -> Found:
        """The mean over the views: a prototype judged in one pose alone need show nothing in the others."""
        assert isinstance(memory, TargetSource)
        targets = memory(step.batch.rows, step.draws.rng("exemplars"), step.batch.share)
        if self.choose == "best":
            first = step.judged[0]
            targets = best_of(targets, first.run.raw_prototypes, first.pose, step.model.bce_slope)
        losses = []
        for seen in step.judged:
            raw, free = seen.run.raw_prototypes, self.unseen == "free"
            loss = transformation_loss(raw, targets, seen.pose, slope=step.model.bce_slope, masked=free)
            losses.append(loss * coverage(seen.all_poses, (raw.shape[-2], raw.shape[-1]), step.batch.share))
        mean = torch.stack(losses).mean()
        return Found(mean, {"transformation minus ln 2": mean.detach() - LN2})


def coverage(poses: Transform, size: Size, share: Share) -> Tensor | float:
    """This share's part of all cells that a view covers, times the number of shares.

    With these weights the mean over shares of their means over covered cells is the mean over all covered
    cells of the global batch.
    """
    if share.of == 1:
        return 1.0
    covered = poses.mask(size).flatten(1).sum(1)
    return covered[share.rows(len(covered))].sum() * share.of / covered.sum().clamp_min(1)


def transformation_loss(
    raw_prototypes: Prototypes,
    targets: Targets,
    transform: Transform,
    *,
    slope: float = 1.0,
    warp: Warp = "target",
    masked: bool = True,
) -> Scalar:
    """BCE between prototypes of T x and canonical targets, within the mask (equation l_trans).

    `warp="prototype"` carries the prototypes back, as the text does; `warp="target"` carries the targets
    forth, which asks for the same and needs no gradient through the resampler. `targets` are means per
    class or per picture and class.
    """
    size = (raw_prototypes.shape[-2], raw_prototypes.shape[-1])
    if warp == "target":
        expected = transform(targets.detach().expand(raw_prototypes.shape))
        losses = F.binary_cross_entropy_with_logits(slope * raw_prototypes, expected, reduction="none")
        return masked_mean(losses, transform.mask(size)) if masked else losses.mean()
    if warp == "prototype":
        back = transform.inverse()
        probabilities = back(torch.sigmoid(slope * raw_prototypes))
        return masked_mean(_bce(probabilities, targets.detach()), back.mask(size))
    raise ConfigError(f"warp: expected 'target' or 'prototype', got {warp!r}")


@torch.no_grad()
def best_of(exemplars: Exemplars, raw_prototypes: Prototypes, transform: Transform, slope: float) -> Targets:
    """For each picture and class the one of its exemplars that its prototype resembles most.

    BCE(σ(r), t) = log(1 + eʳ) - r·t: the exemplars differ in Σ r·t alone. Prototypes are carried back to the
    canonical pose; what the picture does not cover there decides nothing.
    """
    back = transform.inverse()
    mask = back.mask((raw_prototypes.shape[-2], raw_prototypes.shape[-1]))[:, None, None]
    carried = back(slope * raw_prototypes.detach().to(exemplars)) * mask
    agreement = torch.einsum("nkedhw,nkdhw->nke", exemplars, carried)
    best = agreement.argmax(2)
    rows = torch.arange(len(best), device=best.device)[:, None]
    return exemplars[rows, torch.arange(best.shape[1], device=best.device), best]


def masked_mean(losses: Prototypes, mask: Masks) -> Scalar:
    """The mean over classes, depth and covered cells of all pictures; what is not covered may be anything."""
    covered = mask[:, None, None]
    per_cell = losses.shape[1] * losses.shape[2]
    return losses.masked_fill(~covered, 0).sum() / (covered.sum() * per_cell).clamp_min(1)


def _bce(probabilities: Maps, targets: Maps) -> Maps:
    """Binary cross-entropy of probabilities that resampling made, safe at 0 and 1."""
    eps = torch.finfo(probabilities.dtype).eps
    p = probabilities.clamp(eps, 1 - eps)
    return -(targets * p.log() + (1 - targets) * (1 - p).log())
