"""Upsampling guided by the picture: the evidence of a cell goes to the pixels that look like it, all of it.

    share_c(p) = tent(p, c) · exp(-|x_p - x̄_c|² / 2σ²)
    heatmap(p) = Σ_c e_c · share_c(p) / Σ_q share_c(q)

tent is the bilinear kernel, x̄_c the mean colour of the pixels of cell c (joint bilateral upsampling: Kopf et
al. 2007). Shares are divided by their sum over the pixels of each *cell*, not over the cells of each pixel,
so every cell keeps its evidence and the heatmap still sums to the logit. As σ grows it becomes the bilinear
map, but for the edges.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.errors import ConfigError, ShapeError
from torchsite.shapes import Images, Maps

SIGMA = 0.1
SMALLEST = 1e-12  # no pixel is so unlike a cell that a cell without any likeness would lose its evidence
AROUND = (-1, 0, 1)


def enlarge_guided(evidence: Maps, images: Images, sigma: float = SIGMA) -> Maps:
    """Evidence of feature cells spread over the pixels of the pictures that guide it, keeping its sum.

    The picture must have a whole number of pixels for each cell, along both sides.
    """
    (rows, cols), (height, width) = evidence.shape[-2:], images.shape[-2:]
    if height % rows or width % cols or len(images) != len(evidence):
        raise ShapeError(
            f"guided: expected a picture for each map with a whole number of pixels for each cell, got "
            f"{tuple(images.shape)} for cells of {tuple(evidence.shape)}: ask for maps that are not guided"
        )
    if not sigma > 0:
        raise ConfigError(f"sigma: expected a positive difference of colours, got {sigma}")
    if (rows, cols) == (height, width):
        return evidence
    scale = (height // rows, width // cols)
    colours = F.avg_pool2d(images, scale)
    shares = {
        (down, across): _shares(images, colours, scale, down, across, sigma)
        for down in AROUND
        for across in AROUND
    }
    totals = sum(
        _shifted(F.avg_pool2d(share, scale, divisor_override=1), -down, -across)
        for (down, across), share in shares.items()
    )
    spread = evidence / totals
    return sum(  # type: ignore[return-value]  # nine maps, not the 0 of an empty sum
        share * _each(_shifted(spread, down, across), scale) for (down, across), share in shares.items()
    )


def _shares(
    images: Images, colours: Images, scale: tuple[int, int], down: int, across: int, sigma: float
) -> Float[Tensor, "batch 1 height width"]:
    """What each pixel takes of the cell that is `down` and `across` of its own; 0 beyond the edge."""
    rows, cols = colours.shape[-2:]
    there = _shifted(torch.ones_like(colours[:, :1]), down, across)
    tents = [_tent(n, s, step) for n, s, step in ((rows, scale[0], down), (cols, scale[1], across))]
    tent = (tents[0][:, None] * tents[1]).to(images)
    distance = (images - _each(_shifted(colours, down, across), scale)).square().sum(1, keepdim=True)
    likeness = torch.exp(-distance / (2 * sigma**2)).clamp_min(SMALLEST)
    return tent * likeness * _each(there, scale)


def _tent(cells: int, scale: int, step: int) -> Float[Tensor, " pixels"]:
    """The weight of the cell `step` from each pixel's own along one axis, in bilinear interpolation."""
    centres = (torch.arange(scale, dtype=torch.float64) + 0.5) / scale - 0.5  # of pixels, in cells
    return (1 - (centres - step).abs()).clamp_min(0).repeat(cells)


def _shifted(maps: Maps, down: int, across: int) -> Maps:
    """The maps such that each cell holds what stood `down` and `across` of it; 0 beyond the edge."""
    padded = F.pad(maps, (1, 1, 1, 1))
    rows, cols = maps.shape[-2:]
    return padded[..., 1 + down : 1 + down + rows, 1 + across : 1 + across + cols]


def _each(maps: Maps, scale: tuple[int, int]) -> Maps:
    """Every cell repeated for all of its pixels."""
    return maps.repeat_interleave(scale[0], -2).repeat_interleave(scale[1], -1)
