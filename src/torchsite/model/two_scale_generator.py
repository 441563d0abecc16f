"""Prototypes for features at two scales (`two_scales.py`), and the evidence of each scale.

    w_i = [ c_i ; Σ_j a_ij p_j(z_whole) ]        Σ_j |a_ij| ≤ 1, |p_j| ≤ 1

A small part has one prototype for each class, the same everywhere. The prototypes of the whole are mixtures
of a few patterns p_j, which are drawn once for all classes. So the evidence is a 1×1 convolution of the
features of parts, and one of the products p_j ⊙ z: next to nothing, however many classes there are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from torchsite.errors import ConfigError
from torchsite.model.encoder import SPATIAL_WIDTHS
from torchsite.model.spatial_generator import SpatialTrunk
from torchsite.model.two_scales import SHRINKING, atanh, spread, wide
from torchsite.shapes import Features, Logits, Maps, Prototypes, Size


@dataclass(frozen=True, eq=False)
class ScaledForward:
    """One training pass that knows how much each scale says, the smallest first.

    The prototypes are drawn only where somebody wants to see them.
    """

    features: Features
    evidence: Maps
    sums: Float[Tensor, "batch scales classes"]
    size_of_prototypes: Float[Tensor, ""]
    draw: Callable[[Features], Prototypes]
    bound: nn.Module
    is_relative: bool = False

    @property
    def logits(self) -> Logits:
        """The sums of the evidence."""
        return self.evidence.sum((-2, -1))

    @property
    def stages(self) -> tuple[Logits, ...]:
        """What is judged: each scale with the smaller ones, which do not learn from it.

        So a scale says all it can, and a larger one what the smaller ones could not (as in boosting).
        """
        n_scales = self.sums.shape[1]
        return tuple(self.sums[:, k] + self.sums[:, :k].detach().sum(1) for k in range(n_scales))

    @property
    def raw_prototypes(self) -> Prototypes:
        """Those of all classes, before they are bounded."""
        return self.draw(self.features).to(self.features.dtype)

    @property
    def prototypes(self) -> Prototypes:
        """Those of all classes, bounded; of a relative pass relative to their mean."""
        drawn = self.bound(self.raw_prototypes)
        return drawn - drawn.mean(1, keepdim=True) if self.is_relative else drawn

    def scaled(self, scale: float) -> "ScaledForward":
        """The same with evidence times a factor."""
        return replace(self, evidence=self.evidence * scale, sums=self.sums * scale)

    def relative(self) -> "ScaledForward":
        """The same with evidence and prototypes relative to their means over all classes."""
        evidence = self.evidence - self.evidence.mean(1, keepdim=True)
        return replace(
            self, evidence=evidence, sums=self.sums - self.sums.mean(2, keepdim=True), is_relative=True
        )


class TwoScaleGenerator(nn.Module):
    """Constant prototypes of the first `parts` features (unless told four fifths), mixed ones of the rest."""

    any_size = True

    def __init__(
        self,
        depth: int,
        size: Size,
        n_classes: int,
        parts: int | None = None,
        widths: Sequence[int] = SPATIAL_WIDTHS,
        trunk: Sequence[int] = (64, 32, 32),
    ) -> None:
        super().__init__()
        self.n_parts = depth * 4 // 5 if parts is None else parts
        if not 0 <= self.n_parts < depth:
            raise ConfigError(f"parts: expected fewer than the {depth} features, got {parts}")
        coarse = ((size[0] + 1) // 2, (size[1] + 1) // 2)
        self.templates = nn.Parameter(torch.randn(n_classes, self.n_parts) / 10)
        self.trunk = SpatialTrunk(depth - self.n_parts, coarse, widths, trunk)
        self.mixture = nn.Parameter(torch.randn(n_classes, depth - self.n_parts, trunk[-1]) / trunk[-1])

    def forward(self, features: Features) -> Prototypes:
        """Raw prototypes of all classes: a tanh is to bound them."""
        _, patterns = self.read(features)
        mixed = atanh(torch.einsum("kdj,njrc->nkdrc", self.shares, patterns)).to(features.dtype)
        whole = spread(mixed.flatten(1, 2), features).unflatten(1, mixed.shape[1:3])
        templates = self.templates.to(features)[None, :, :, None, None]
        return torch.cat([templates.expand(len(features), -1, -1, *features.shape[-2:]), whole], 2)

    def fused(self, features: Features, bound: nn.Module) -> ScaledForward:
        """The evidence of both scales together, smoothed, and its sums apart."""
        if not isinstance(bound, nn.Tanh):
            raise ConfigError("two_scales: expected activation: tanh, which its prototypes are made for")
        whole, patterns = self.read(features)
        shares = self.shares.to(features)
        with torch.autocast(features.device.type, enabled=False):
            parts = F.conv2d(features[:, : self.n_parts], bound(self.templates)[:, :, None, None])
            products = (whole[:, :, None] * patterns[:, None]).flatten(1, 2)
            coarse = spread(F.conv2d(products, shares.flatten(1)[:, :, None, None]), parts)
            size = torch.einsum("kdj,jrc->kdrc", shares.detach(), patterns[0].detach()).abs().mean()
        sums = torch.stack([parts.sum((-2, -1)), coarse.sum((-2, -1))], 1)
        return ScaledForward(features, smoothed(parts + coarse), sums, size, self, bound)

    def read(self, features: Features) -> tuple[Features, Maps]:
        """The features of the whole, a cell for each 2 × 2, and the patterns that prototypes are mixed of."""
        whole = F.avg_pool2d(features[:, self.n_parts :], 2, ceil_mode=True, count_include_pad=False)
        return whole, torch.tanh(wide(self.trunk(whole / SHRINKING))).to(features.dtype)

    @property
    def shares(self) -> Float[Tensor, "classes depth patterns"]:
        """How much of each pattern is in a prototype; their sizes sum to 1 at the most."""
        return self.mixture / self.mixture.abs().sum(-1, keepdim=True).clamp_min(1)


def smoothed(evidence: Maps) -> Maps:
    """The evidence of each cell spread over 3 × 3 cells, as [1 2 1]/4 along both axes; sums stay as they are.

    A feature sees almost five cells, so what it says is of all of them, not of the one in the middle.
    """
    rows, cols = (neighbours(n, evidence) for n in evidence.shape[-2:])
    with torch.autocast(evidence.device.type, enabled=False):
        return ((evidence @ cols).mT.contiguous() @ rows).mT  # two large products, not many small ones


def neighbours(n: int, like: Tensor) -> Float[Tensor, "n n"]:
    """What each of `n` cells in a row gives to the others; cells at the ends keep what would fall off."""
    kept = torch.eye(n + 2, dtype=like.dtype, device=like.device)
    shares = (kept[:-2] + 2 * kept[1:-1] + kept[2:]) / 4
    shares[0, 1] += shares[0, 0]
    shares[-1, -2] += shares[-1, -1]
    return shares[:, 1:-1]
