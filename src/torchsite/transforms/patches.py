"""A grid of patches over a picture: which pixel belongs to which, sums over them, pictures without one."""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from torchsite.errors import ConfigError
from torchsite.shapes import Heatmaps, Images, Masks, Size
from torchsite.transforms.fill import Fill


def patch_numbers(size: Size, grid: Size) -> Int64[Tensor, "rows cols"]:
    """The number of each pixel's patch, counted by rows; sides that do not divide give uneven patches."""
    if min(grid) < 1 or grid[0] > size[0] or grid[1] > size[1]:
        raise ConfigError(f"grid: expected 1 to {size[0]} by 1 to {size[1]} patches, got {tuple(grid)}")
    row, col = (torch.arange(n) * parts // n for n, parts in zip(size, grid, strict=True))
    return row[:, None] * grid[1] + col


def patch_sums(heatmaps: Heatmaps, grid: Size) -> Float[Tensor, "batch patches"]:
    """The evidence of each patch, in float64."""
    numbers = patch_numbers((heatmaps.shape[-2], heatmaps.shape[-1]), grid).to(heatmaps.device)
    sums = heatmaps.new_zeros(len(heatmaps), grid[0] * grid[1], dtype=torch.float64)
    return sums.index_add_(1, numbers.flatten(), heatmaps.flatten(1).double())


def without_each(images: Images, grid: Size, background: Images) -> Iterator[Images]:
    """The pictures with one patch replaced by the background, patch after patch."""
    numbers = patch_numbers((images.shape[-2], images.shape[-1]), grid).to(images.device)
    for number in range(grid[0] * grid[1]):
        yield torch.where(numbers == number, background, images)


def hide_patches(images: Images, hidden: Masks, fill: Fill, *, rng: torch.Generator) -> Images:
    """The pictures with some patches of a grid replaced: `hidden` says for each picture which ones."""
    grid = (hidden.shape[1], hidden.shape[2])
    numbers = patch_numbers((images.shape[-2], images.shape[-1]), grid)
    shown = ~hidden.flatten(1)[:, numbers]
    return fill.replace(images, shown.to(images.device), rng=rng)
