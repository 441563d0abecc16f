"""Features at two scales for many classes: prototypes of the whole are mixtures of shared patterns.

    w_i = [ c_i ; Σ_j a_ij p_j(z_whole) ]        Σ_j |a_ij| ≤ 1, |p_j| ≤ 1

The patterns p_j are drawn once for all classes. So the evidence of the whole is a 1×1 convolution of the
products p_j ⊙ z: next to nothing, where a step with a hundred classes would take twice as long.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from torchsite.model.spatial_generator import SpatialTrunk
from torchsite.model.two_scale_generator import TwoScaleGenerator
from torchsite.model.two_scales import NEARLY, atanh, spread, wide
from torchsite.shapes import Features, Maps, Prototypes, Size


class SharedPatterns(TwoScaleGenerator):
    """Constant prototypes of the first `parts` features (unless told four fifths), mixtures for the rest."""

    def prepare(
        self, depth: int, size: Size, n_classes: int, widths: Sequence[int], trunk: Sequence[int]
    ) -> nn.Module:
        """The trunk that draws the patterns, as many as its last width; beside it the classes' shares."""
        self.mixture = nn.Parameter(torch.randn(n_classes, depth, trunk[-1]) / trunk[-1])
        with torch.no_grad():
            self.templates.div_(10)  # logits of many classes begin near zero
        return SpatialTrunk(depth, size, widths, trunk)

    def drawn(self, features: Features) -> Prototypes:
        """Raw prototypes of the features of the whole, on a grid of half as many rows and columns."""
        mixed = torch.einsum("kdj,njrc->nkdrc", self.shares, self.patterns(features))
        return atanh(mixed).to(features.dtype)

    def of_whole(self, features: Features, bound: nn.Module) -> tuple[Maps, Float[Tensor, ""]]:
        """The evidence of the whole, and the size of the prototypes of the first picture."""
        if not isinstance(bound, nn.Tanh):
            return super().of_whole(features, bound)
        whole, patterns = self.pooled(features), self.patterns(features)
        shares = (NEARLY * self.shares).to(features)  # as through atanh and tanh
        with torch.autocast(features.device.type, enabled=False):
            products = (whole[:, :, None] * patterns[:, None]).flatten(1, 2)
            mixed = F.conv2d(products, shares.flatten(1)[:, :, None, None])
            size = torch.einsum("kdj,jrc->kdrc", shares.detach(), patterns[0].detach()).abs().mean()
        return spread(mixed, features), size

    def patterns(self, features: Features) -> Maps:
        """What the prototypes of the whole are mixed of."""
        return torch.tanh(wide(self._drawn(features))).to(features.dtype)

    @property
    def shares(self) -> Float[Tensor, "classes depth patterns"]:
        """How much of each pattern is in a prototype; their sizes sum to 1 at the most."""
        return self.mixture / self.mixture.abs().sum(-1, keepdim=True).clamp_min(1)
