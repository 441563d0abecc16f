"""Generators that know a shorter way to the evidence than by drawing the prototypes of all classes.

    constant    w_i(u) = c_i                     evidence_i(u) = c_i · z(u), a 1×1 convolution
    mixed       w_i(u) = Σ_r a_ir b_r(u)         evidence_i(u) = Σ_r a_ir (b_r(u) · z(u)),  Σ_r |a_ir| = 1

With a hundred classes, classes × depth maps are most of the work of a step and of its memory. Mixtures of a
few drawn prototypes b_r need rank × depth maps, however many classes there are; each w_i is still bounded,
follows the picture, and can be drawn when somebody wants to see it.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from torchsite.model.encoder import SPATIAL_WIDTHS
from torchsite.model.site import Forward
from torchsite.model.spatial_generator import SpatialGenerator
from torchsite.shapes import Features, Labels, Logits, Maps, Prototypes, Size

RANK = 16
NEARLY = 1 - 1e-4  # beyond it the inverse of tanh has nothing to say


class ConstantGenerator(nn.Module):
    """One prototype of a single cell for each class, the same for every picture, place and pose.

    Evidence is then w_i · z in every cell: class activation maps (Zhou et al. 2016) of a network without a
    bias, complete by construction. The peer to compare SITE with: what prototypes gain by being drawn.
    """

    any_size = True

    def __init__(self, depth: int, size: Size, n_classes: int) -> None:
        super().__init__()
        del size  # any will do
        self.cells = nn.Parameter(0.1 * torch.randn(n_classes, depth))

    def forward(self, features: Features) -> Prototypes:
        """Raw prototypes of all classes."""
        return self._everywhere(self.cells, features)

    def fused(self, features: Features, bound: nn.Module) -> Forward:
        """Raw and bounded prototypes, which are views of single cells, and evidence."""
        cells = bound(self.cells)
        evidence = at_each_cell(features, cells)
        raw, bounded = self._everywhere(self.cells, features), self._everywhere(cells, features)
        return Forward(features, raw, bounded, evidence)

    @staticmethod
    def _everywhere(cells: Tensor, features: Features) -> Prototypes:
        n, _, rows, cols = features.shape
        return cells[None, :, :, None, None].expand(n, -1, -1, rows, cols)


class MixedGenerator(nn.Module):
    """Draws `rank` prototypes as the spatial generator does; those of the classes are mixtures of them."""

    any_size = True

    def __init__(
        self,
        depth: int,
        size: Size,
        n_classes: int,
        widths: Sequence[int] = SPATIAL_WIDTHS,
        trunk: Sequence[int] = (64, 32, 32),
        rank: int = RANK,
    ) -> None:
        super().__init__()
        self.drawing = SpatialGenerator(depth, size, rank, widths, trunk)
        self.shares = nn.Parameter(torch.randn(n_classes, rank))

    def mixing(self, signed: bool) -> Float[Tensor, "classes rank"]:
        """a: how much of each drawn prototype, for or (if signed) against, is in that of each class."""
        sizes = self.shares.abs()
        return (self.shares if signed else sizes) / sizes.sum(1, keepdim=True).clamp_min(1e-6)

    def forward(self, features: Features) -> Prototypes:
        """Raw prototypes of all classes, whose tanh are the mixtures: for those who want to see them all."""
        return self.fused(features, nn.Tanh()).raw_prototypes

    def fused(self, features: Features, bound: nn.Module) -> "MixedForward":
        """The drawn prototypes, bounded, and the evidence of all classes."""
        kind = MixedForward if isinstance(bound, nn.Tanh) else PositiveMixedForward
        basis = bound(self.drawing(features).to(features.dtype))
        mixing = self.mixing(signed=kind is MixedForward).to(features.dtype)
        evidence = at_each_cell((basis * features.unsqueeze(1)).sum(2), mixing)
        return kind(features, basis, mixing.expand(len(features), -1, -1), evidence)


def at_each_cell(maps: Maps, weights: Float[Tensor, "outputs inputs"]) -> Maps:
    """weights · maps(u) in every cell; never in half precision, whatever the networks run in."""
    device = maps.device.type
    with nullcontext() if device == "meta" else torch.autocast(device, enabled=False):
        return F.conv2d(maps, weights[:, :, None, None])


@dataclass(frozen=True, eq=False)
class MixedForward:
    """One training pass whose prototypes are mixtures, w = a · b: drawn only for the classes asked for."""

    features: Features
    basis: Float[Tensor, "batch rank depth rows cols"]
    mixing: Float[Tensor, "batch classes rank"]
    evidence: Float[Tensor, "batch classes rows cols"]

    @property
    def logits(self) -> Logits:
        """The sums of the evidence."""
        return self.evidence.sum((-2, -1))

    @property
    def stages(self) -> tuple[Logits, ...]:
        """What is judged: the logits."""
        return (self.logits,)

    @property
    def prototypes(self) -> Prototypes:
        """Those of all classes, bounded."""
        return self.prototypes_of(None)

    @property
    def raw_prototypes(self) -> Prototypes:
        """Those of all classes, before they were bounded by tanh."""
        return self.raw_of(None)

    @property
    def size_of_prototypes(self) -> Tensor:
        """The mean size of what is drawn."""
        return self.basis.detach().abs().mean()

    def prototypes_of(self, classes: Labels | None) -> Prototypes:
        """The prototypes of these classes; None: of all."""
        mixing = self.mixing if classes is None else self.mixing[:, classes]
        return torch.einsum("nkr,nrdhw->nkdhw", mixing, self.basis)

    def raw_of(self, classes: Labels | None) -> Prototypes:
        """Of these classes, before they were bounded by tanh: its inverse."""
        return (NEARLY * self.prototypes_of(classes)).atanh()

    def scaled(self, scale: float) -> "MixedForward":
        """The same with evidence times a factor."""
        return replace(self, evidence=self.evidence * scale)

    def relative(self) -> "MixedForward":
        """The same with mixtures and evidence relative to their means over all classes."""
        mixing, evidence = (x - x.mean(1, keepdim=True) for x in (self.mixing, self.evidence))
        return replace(self, mixing=mixing, evidence=evidence)


class PositiveMixedForward(MixedForward):
    """The same where prototypes are in [0, 1], bounded by a sigmoid: no share is negative."""

    def raw_of(self, classes: Labels | None) -> Prototypes:
        """Of these classes, before they were bounded: the inverse of the sigmoid."""
        return self.prototypes_of(classes).logit(eps=1 - NEARLY)
