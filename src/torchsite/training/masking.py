"""Rectangles that hide a part of each picture: where nothing is seen, nothing may count as evidence."""

import math

import torch

from torchsite.randomness import Rng
from torchsite.shapes import Masks, Size

ASPECT = 2.0  # no side of a rectangle is more than this many times the other, in shares of the frame


def what_is_shown(n: int, size: Size, hidden: float, rng: Rng) -> Masks:
    """True where each picture is seen: all but one rectangle of the share `hidden`, wherever it fits."""
    stretch = ASPECT ** (torch.rand(n, generator=rng) - 0.5)
    places = torch.rand(2, n, generator=rng)
    seen = torch.ones(n, *size, dtype=torch.bool)
    if not hidden:
        return seen
    inside = []
    for length, side, place in zip(size, (stretch, 1 / stretch), places, strict=True):
        span = (math.sqrt(hidden) * side).clamp(max=1) * length
        first = place * (length - span)
        cells = torch.arange(length) + 0.5
        inside.append((cells >= first[:, None]) & (cells < (first + span)[:, None]))
    rows, cols = inside
    return seen & ~(rows[:, :, None] & cols[:, None, :])
