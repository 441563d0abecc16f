"""Bring the pictures of a set in memory to another size."""

from dataclasses import replace

import torch
from torch.nn.functional import interpolate

from torchsite.data.dataset import Dataset
from torchsite.shapes import Pixels

CHUNK = 1024


def resized(data: Dataset, size: int | None) -> Dataset:
    """The pictures as squares of `size` pixels, bilinear and antialiased; as they are if `size` is None."""
    if size is None or data.images.shape[-2:] == (size, size):
        return data
    return replace(
        data, images=torch.cat([_resize(part, size) for part in data.images.split(CHUNK)]), larger=None
    )


def _resize(pixels: Pixels, size: int) -> Pixels:
    shrinks = size < max(pixels.shape[-2:])  # enlarging needs no antialiasing, which is slow
    resampled = interpolate(pixels.float(), size=(size, size), mode="bilinear", antialias=shrinks)
    return resampled.round_().clamp_(0, 255).to(torch.uint8)
