"""Smooth distortions: a band-limited displacement that stays invertible, with a numerical inverse.

The lookup is p ↦ p + u(p), where u is a sum of plane waves with at most `BAND` half-periods across the
picture,

    u_a(p) = Σ_k c_ak · sin(π/2 · k·p + φ_ak),     k ∈ {1 … BAND}² with signs,

and the coefficients are scaled so that the Lipschitz constant of u is at most the `amplitude` of the
family, which is below 1. Hence p ↦ p + u(p) is a bijection of the plane (Banach), and its inverse is the
limit of q ← p - u(q), which gains a factor 1/amplitude with every step: 60 steps at 0.6 leave 5e-14.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from torchsite.errors import ConfigError, ShapeError
from torchsite.randomness import Rng
from torchsite.shapes import Points
from torchsite.transforms.base import Transform

BAND = 2
MAX_AMPLITUDE = 0.7
RESIDUAL = 1e-10


def wave_vectors() -> Float[Tensor, "waves 2"]:
    """The wave vectors of the band, in radians per unit of the centred coordinates."""
    pairs = [(kx, ky) for kx in range(-BAND, BAND + 1) for ky in range(BAND + 1) if (ky, kx) > (0, 0)]
    return torch.tensor(pairs, dtype=torch.float64) * (math.pi / 2)


@dataclass(frozen=True, eq=False)
class SmoothTransform(Transform):
    """One distortion per picture: the coefficients and phases of its waves, forwards or inverted."""

    coefficients: Float[Tensor, "batch 2 waves"]
    phases: Float[Tensor, "batch 2 waves"]
    inverted: bool = False

    def __post_init__(self) -> None:
        if self.coefficients.shape != self.phases.shape or self.coefficients.ndim != 3:
            raise ShapeError(
                f"expected coefficients and phases of one shape (batch, 2, waves), "
                f"got {tuple(self.coefficients.shape)} and {tuple(self.phases.shape)}"
            )
        if bool((self.lipschitz() > MAX_AMPLITUDE + 1e-9).any()):
            raise ConfigError(
                f"a distortion is invertible only if its Lipschitz bound is below 1, here at most "
                f"{MAX_AMPLITUDE}; got {float(self.lipschitz().max()):.3f}: use smaller coefficients"
            )

    @classmethod
    def sample(cls, n: int, amplitude: Tensor | float, rng: Rng) -> "SmoothTransform":
        """`n` random distortions whose Lipschitz bound is `amplitude` exactly."""
        waves = wave_vectors()
        shape = (n, 2, len(waves))
        raw = torch.randn(shape, generator=rng, dtype=torch.float64) / waves.norm(dim=1) ** 2
        phases = 2 * math.pi * torch.rand(shape, generator=rng, dtype=torch.float64)
        amplitudes = torch.as_tensor(amplitude, dtype=torch.float64).expand(n)
        bound = _lipschitz(raw, waves).clamp_min(1e-12)
        return cls(raw * (amplitudes / bound)[:, None, None], phases)

    def lipschitz(self) -> Float[Tensor, " batch"]:
        """A bound on how much faster u changes than its argument: below 1, the map is invertible."""
        return _lipschitz(self.coefficients, wave_vectors().to(self.device))

    def displacement(self, points: Points) -> Points:
        """u(p), the displacement of the lookup."""
        arguments = torch.einsum("nhwj,kj->nhwk", points, wave_vectors().to(points))[:, :, :, None, :]
        waves = torch.sin(arguments + self.phases[:, None, None])
        return (waves * self.coefficients[:, None, None]).sum(-1)

    def __len__(self) -> int:
        return len(self.coefficients)

    def __getitem__(self, index: "int | slice | Tensor") -> "SmoothTransform":
        shape = (-1, *self.coefficients.shape[1:])
        picked = (self.coefficients[index].reshape(shape), self.phases[index].reshape(shape))
        return SmoothTransform(*picked, inverted=self.inverted)

    def inverse(self) -> "SmoothTransform":
        """The same waves, read the other way round."""
        return SmoothTransform(self.coefficients, self.phases, inverted=not self.inverted)

    def to(self, device: torch.device | str) -> "SmoothTransform":
        """The same waves on another device."""
        return SmoothTransform(self.coefficients.to(device), self.phases.to(device), self.inverted)

    def lookup(self, points: Points) -> Points:
        """p + u(p), or its inverse to a residual of 1e-10 by fixed-point iteration."""
        if not self.inverted:
            return points + self.displacement(points)
        found = points
        for _ in range(self._steps()):
            found = points - self.displacement(found)
        return found

    def affine_part(self) -> Float[Tensor, "batch 3 3"]:
        """The identity: a distortion neither turns nor shifts as a whole."""
        return torch.eye(3, dtype=torch.float64, device=self.device).repeat(len(self), 1, 1)

    @property
    def device(self) -> torch.device:
        """Where the coefficients live."""
        return self.coefficients.device

    def _steps(self) -> int:
        """Enough steps for the residual: each shrinks the error by the Lipschitz bound."""
        bound = max(self.lipschitz().tolist(), default=0.0)
        if bound < RESIDUAL:
            return 1
        reach = self.coefficients.abs().sum(-1).max().item()
        return max(1, math.ceil(math.log(RESIDUAL / reach) / math.log(bound)))


def _lipschitz(coefficients: Tensor, waves: Tensor) -> Tensor:
    """‖Du‖ ≤ ‖(Σ_k |c_1k| |k|, Σ_k |c_2k| |k|)‖₂: each row of the Jacobian is bounded by its waves."""
    return (coefficients.abs() * waves.norm(dim=1)).sum(-1).norm(dim=-1)
