"""Randomness is an argument: named streams of random numbers grown from one seed.

All sampling happens on the CPU, so that the same seed gives the same values on any device. Torch's generator
there uses 32 bits of a seed: seeds from 0 to 2³² - 1 are all different.
"""

import hashlib

import torch

Rng = torch.Generator


def make_rng(seed: int, *stream: str | int) -> Rng:
    """A generator for one purpose; streams of different names are independent of each other."""
    rng = torch.Generator()
    if not stream:
        return rng.manual_seed(seed)
    digest = hashlib.sha256(repr((seed, *stream)).encode()).digest()
    return rng.manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def uniform(low: float, high: float, n: int, rng: Rng) -> torch.Tensor:
    """`n` float64 values, uniform in [low, high)."""
    return low + (high - low) * torch.rand(n, generator=rng, dtype=torch.float64)
