"""A part of a picture is hidden with a brush: did the explanation say what would happen?

    h = T(hidden), the share of each pixel of T x that the brush covers
    T x hidden = T x + h ⊙ (mean colour of x - T x)
    covered = Σ h ⊙ I(T x)        against        logit(T x) - logit(T x hidden)

The live form of `torchsite.metrics.patch_deletion`, for one part of any shape.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from torchsite.shapes import Heatmaps, Images
from torchsite.transforms.affine import AffineTransform


@dataclass(frozen=True)
class BrushScores:
    """What an explainer said of the hidden part, and the logit of its model before and after."""

    covered: float
    gained: float
    total: float
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Brush:
    """What is hidden of one moved picture."""

    shares: Tensor
    moved: Images
    hidden: Images

    @classmethod
    def over(cls, still: Tensor, moved: Tensor, transform: AffineTransform, pixels: Tensor) -> "Brush":
        """Hide some pixels of x in T x, where they are now."""
        shares = transform(pixels[None].to(still))[0]
        background = still.mean((-2, -1), keepdim=True)
        return cls(shares, moved[None], (moved + shares * (background - moved))[None])

    def share(self, transform: AffineTransform) -> float:
        """How much of what is seen of the picture is hidden."""
        seen = transform(torch.ones_like(self.shares)[None])
        return float(self.shares.sum() / seen.sum().clamp_min(1e-9))

    def scores(self, heatmap: Heatmaps, before: float, after: float) -> BrushScores:
        """A map of T x beside what became of the logit."""
        values = heatmap.double()
        covered, gained = (values * self.shares).sum(), values.clamp_min(0).sum()
        return BrushScores(float(covered), float(gained), float(values.sum()), before, after)
