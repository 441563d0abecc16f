"""Pictures that are known functions of the plane, so that errors of resampling have bounds.

A picture is f(p) = Σ a·cos(k·p + φ) at its pixel centres, in the centred coordinates of the transforms. With
‖H‖ ≤ Σ a|k|² for its second derivatives and h for the side of a pixel, bilinear interpolation errs by at
most h²/8·(|f_xx| + |f_yy|) ≤ h²/4·‖H‖. Each resampling adds such a term, and nothing else.
"""

import math
from dataclasses import dataclass

import torch

from torchsite.randomness import make_rng
from torchsite.transforms.base import Frame


@dataclass(frozen=True)
class SmoothPictures:
    """`n` pictures of a few slow waves each, at any size."""

    waves: torch.Tensor
    amplitudes: torch.Tensor
    phases: torch.Tensor

    @classmethod
    def draw(cls, n, seed, channels=2, n_waves=3, fastest=1.5):
        rng = make_rng(seed, "smooth pictures")
        shape = (n, channels, n_waves)
        waves = fastest * math.pi * (2 * torch.rand(*shape, 2, generator=rng, dtype=torch.float64) - 1)
        amplitudes = torch.rand(shape, generator=rng, dtype=torch.float64) / n_waves
        return cls(waves, amplitudes, 2 * math.pi * torch.rand(shape, generator=rng, dtype=torch.float64))

    def at(self, points):
        """The values at points of shape (n, rows, cols, 2)."""
        arguments = torch.einsum("nckj,nhwj->nckhw", self.waves, points) + self.phases[..., None, None]
        return (self.amplitudes[..., None, None] * torch.cos(arguments)).sum(2)

    def __call__(self, size, dtype=torch.float64):
        centres = Frame.of(size, torch.device("cpu")).pixel_centres()
        return self.at(centres.expand(len(self.waves), *size, 2)).to(dtype)

    @property
    def slope(self):
        """A bound on |∇f|."""
        return float((self.amplitudes * self.waves.norm(dim=-1)).sum(-1).max())

    @property
    def bend(self):
        """A bound on the second derivatives ‖H‖."""
        return float((self.amplitudes * self.waves.norm(dim=-1) ** 2).sum(-1).max())

    @property
    def height(self):
        """A bound on |f|."""
        return float(self.amplitudes.sum(-1).max())


def interpolation_error(size, bend):
    """What one bilinear resampling of a function with ‖H‖ ≤ bend can err."""
    pixel = 2 / min(size)
    return pixel**2 / 4 * bend
