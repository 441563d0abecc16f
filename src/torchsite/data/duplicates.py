"""Pictures that are there twice: the same file, or one that looks nearly the same.

Exact copies are found by size and hash of the file. Nearly equal pictures are found by a perceptual hash, the
signs of the differences of neighbours at 8 × 9 cells (Krawetz 2013), and, since flat pictures share hashes,
by their pixels at 16 × 16.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from torchsite.data.dataset import to_float
from torchsite.files import regular
from torchsite.shapes import Pixels

NEAR_BITS = 4
NEAR_PIXELS = 0.06
CHUNK = 1024


def same_files(paths: Sequence[Path]) -> list[list[int]]:
    """Groups of positions whose files have the same content; only files of one size are read."""
    by_size = _grouped(range(len(paths)), lambda row: paths[row].stat().st_size)
    return [
        copies for candidates in by_size for copies in _grouped(candidates, lambda row: _digest(paths[row]))
    ]


def near_pairs(first: Pixels, second: Pixels) -> list[tuple[int, int]]:
    """Each picture of `second` that looks like one of `first`: the row of the nearest one, and its own."""
    bits, small = perceptual_hashes(first), _small(first)
    pairs: list[tuple[int, int]] = []
    for start in range(0, len(second), CHUNK):
        part = second[start : start + CHUNK]
        theirs = _small(part)
        distances = (bits.shape[1] - perceptual_hashes(part) @ bits.T) / 2
        nearest = distances.topk(min(5, len(first)), dim=1, largest=False)
        gaps = (theirs[:, None] - small[nearest.indices]).square().mean(2).sqrt()
        gaps[nearest.values > NEAR_BITS] = torch.inf
        best, which = gaps.min(1)
        rows = (best < NEAR_PIXELS).nonzero().flatten().tolist()
        pairs += [(int(nearest.indices[row, which[row]]), start + row) for row in rows]
    return pairs


def perceptual_hashes(pixels: Pixels) -> Tensor:
    """64 signs for each picture, as ±1: which of two neighbouring cells is the brighter."""
    parts = [
        F.adaptive_avg_pool2d(to_float(part).mean(1, keepdim=True), (8, 9)) for part in pixels.split(CHUNK)
    ]
    cells = torch.cat(parts)[:, 0]
    return torch.where(cells[:, :, 1:] > cells[:, :, :-1], 1.0, -1.0).flatten(1)


def _small(pixels: Pixels) -> Tensor:
    return torch.cat([F.adaptive_avg_pool2d(to_float(part), 16).flatten(1) for part in pixels.split(CHUNK)])


def _grouped(rows: Iterable[int], key: Callable[[int], Hashable]) -> list[list[int]]:
    """The groups of two and more rows that share a key."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return [group for group in groups.values() if len(group) > 1]


def _digest(path: Path) -> bytes:
    with regular(path).open("rb") as content:
        return hashlib.file_digest(content, "blake2b").digest()
