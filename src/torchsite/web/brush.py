"""Hide a part of a picture and compare the change of the logit with the attribution of that part.

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
    """The attribution of the hidden part, and the logit before and after hiding it."""

    covered: float
    gained: float
    total: float
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Brush:
    """The hidden part of one moved picture."""

    shares: Tensor
    moved: Images
    hidden: Images

    @classmethod
    def over(cls, still: Tensor, moved: Tensor, transform: AffineTransform, pixels: Tensor) -> "Brush":
        """Hide in T x the places to which some pixels of x have moved."""
        shares = transform(pixels[None].to(still))[0]
        background = still.mean((-2, -1), keepdim=True)
        return cls(shares, moved[None], (moved + shares * (background - moved))[None])

    def share(self, transform: AffineTransform) -> float:
        """The share of the visible picture that is hidden."""
        seen = transform(torch.ones_like(self.shares)[None])
        return float(self.shares.sum() / seen.sum().clamp_min(1e-9))

    def scores(self, heatmap: Heatmaps, before: float, after: float) -> BrushScores:
        """The scores of one heatmap of T x."""
        values = heatmap.double()
        covered, gained = (values * self.shares).sum(), values.clamp_min(0).sum()
        return BrushScores(float(covered), float(gained), float(values.sum()), before, after)
