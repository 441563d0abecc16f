"""Prototypes for features at two scales (`two_scales.py`), and the evidence of each scale.

    w_i = [ c_i ; G_i(z_whole) / √8 ]

A small part has one prototype for each class, the same everywhere: the evidence of parts is a 1×1
convolution, which costs next to nothing, however many classes there are. The prototypes of the whole are
drawn by the spatial generator.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from torchsite.errors import ConfigError
from torchsite.model.encoder import SPATIAL_WIDTHS
from torchsite.model.spatial_generator import SpatialGenerator
from torchsite.model.two_scales import NEARLY, SHRINKING, shrunk, spread, wide
from torchsite.shapes import Features, Logits, Maps, Prototypes, Size

ScaledEvidence = Float[Tensor, "batch scales classes rows cols"]


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
    """Constant prototypes of the first `parts` features (unless told four fifths), drawn ones of the rest."""

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
        self.templates = nn.Parameter(torch.randn(n_classes, self.n_parts))
        coarse = ((size[0] + 1) // 2, (size[1] + 1) // 2)
        self.drawing = self.prepare(depth - self.n_parts, coarse, n_classes, widths, trunk)

    def prepare(
        self, depth: int, size: Size, n_classes: int, widths: Sequence[int], trunk: Sequence[int]
    ) -> nn.Module:
        """What draws the prototypes of the features of the whole, of which there are `depth`."""
        return SpatialGenerator(depth, size, n_classes, widths, trunk)

    def forward(self, features: Features) -> Prototypes:
        """Raw prototypes of all classes."""
        n, _, rows, cols = features.shape
        templates = self.templates.to(features)[None, :, :, None, None].expand(n, -1, -1, rows, cols)
        drawn = self.drawn(features)
        return torch.cat([templates, spread(drawn.flatten(1, 2), features).unflatten(1, drawn.shape[1:3])], 2)

    def drawn(self, features: Features) -> Prototypes:
        """Raw prototypes of the features of the whole, on a grid of half as many rows and columns."""
        return shrunk(self._drawn(features)).to(features.dtype)

    def fused(self, features: Features, bound: nn.Module) -> ScaledForward:
        """The evidence of both scales together, smoothed, and its sums apart."""
        scales, size = self.by_scale(features, bound)
        return ScaledForward(features, smoothed(scales.sum(1)), scales.sum((-2, -1)), size, self, bound)

    def by_scale(self, features: Features, bound: nn.Module) -> tuple[ScaledEvidence, Float[Tensor, ""]]:
        """The evidence of parts and of the whole, and the size of the prototypes of the whole."""
        cells, (whole, size) = bound(self.templates.to(features)), self.of_whole(features, bound)
        with torch.autocast(features.device.type, enabled=False):
            parts = torch.einsum("ndrc,kd->nkrc", features[:, : self.n_parts], cells)
        return torch.stack([parts, whole], 1), size

    def of_whole(self, features: Features, bound: nn.Module) -> tuple[Maps, Float[Tensor, ""]]:
        """The evidence of the whole, and the size of its prototypes.

        No prototypes are drawn on the finer grid, and none is bounded twice by the usual tanh.
        """
        if not isinstance(bound, nn.Tanh):
            return self.product(features, bound(self.drawn(features)))
        # tanh(atanh(x)) = x: of the usual bound, what `shrunk` does is a factor.
        drawn = NEARLY * SHRINKING * bound(wide(self._drawn(features)))
        return self.product(features, drawn.to(features.dtype))

    def product(self, features: Features, drawn: Prototypes) -> tuple[Maps, Float[Tensor, ""]]:
        """The evidence of the whole by bounded prototypes, and their size."""
        with torch.autocast(features.device.type, enabled=False):
            return at_four_cells(features[:, self.n_parts :], drawn), drawn.detach().abs().mean()

    def _drawn(self, features: Features) -> Prototypes:
        """What `drawing` makes of the features of the whole, neither bounded nor shrunk."""
        return self.drawing(self.pooled(features) / SHRINKING)

    def pooled(self, features: Features) -> Features:
        """The features of the whole, one cell for 2 × 2 of the parts."""
        return F.avg_pool2d(features[:, self.n_parts :], 2, ceil_mode=True, count_include_pad=False)


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


def at_four_cells(features: Features, prototypes: Prototypes) -> Maps:
    """The products of prototypes with the features of the 2 × 2 cells that each of them covers."""
    rows, cols = features.shape[-2:]
    even = F.pad(features, (0, cols % 2, 0, rows % 2))
    cells = even.unflatten(3, (-1, 2)).unflatten(2, (-1, 2))
    return torch.einsum("nkdrc,ndrxcy->nkrxcy", prototypes, cells).flatten(4).flatten(2, 3)[..., :rows, :cols]
