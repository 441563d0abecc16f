"""How alike two maps are: cosine, Pearson and Spearman, within a mask, one score per picture.

All sums run in float64: near a floor of 1 the calibrated score divides two small differences. A map that is
zero (or, for the correlations, constant) has no direction: its similarity to anything is 0, itself included.
"""

import torch
from torch import Tensor

from torchsite.shapes import Heatmaps, Maps, Masks, Scores


def masked_cosine(first: Heatmaps, second: Heatmaps, masks: Masks) -> Scores:
    """cos(m ⊙ a, m ⊙ b); 0 if either vanishes within the mask."""
    a, b = _masked(first, masks), _masked(second, masks)
    return _cosine(a, b)


def masked_pearson(first: Heatmaps, second: Heatmaps, masks: Masks) -> Scores:
    """The correlation over the pixels of the mask: the cosine after each map lost its mean there."""
    a, b = _masked(first, masks), _masked(second, masks)
    return _cosine(_centred(a, masks.flatten(1)), _centred(b, masks.flatten(1)))


def spearman(first: Maps, second: Maps) -> Scores:
    """The correlation of the ranks; tied pixels share their mean rank, a constant map scores 0."""
    a, b = ranks(first), ranks(second)
    everywhere = torch.ones_like(a, dtype=torch.bool)
    return _cosine(_centred(a, everywhere), _centred(b, everywhere))


def ranks(maps: Maps) -> Tensor:
    """The rank of each pixel within its map, from 0; equal pixels get the mean of their ranks."""
    values = maps.flatten(1)
    ordered = values.sort(dim=1).values
    below = torch.searchsorted(ordered, values.contiguous(), right=False)
    up_to = torch.searchsorted(ordered, values.contiguous(), right=True)
    return (below + up_to - 1).to(torch.float64) / 2


def _masked(maps: Heatmaps, masks: Masks) -> Tensor:
    """Flat maps in float64, scaled to a maximum of 1 so that no square under- or overflows."""
    flat = (maps.to(torch.float64) * masks).flatten(1)
    peak = flat.abs().amax(dim=1, keepdim=True)
    return flat / torch.where(peak > 0, peak, 1.0)


def _centred(values: Tensor, masks: Tensor) -> Tensor:
    """The values less their mean over the mask; what rounding leaves of a constant is taken for zero."""
    mean = (values * masks).sum(1, keepdim=True) / masks.sum(1, keepdim=True).clamp_min(1)
    centred = (values - mean) * masks
    scale = (values * masks).abs().amax(dim=1, keepdim=True)
    noise = 8 * torch.finfo(torch.float32).eps * scale
    return torch.where(centred.abs().amax(dim=1, keepdim=True) > noise, centred, 0.0)


def _cosine(a: Tensor, b: Tensor) -> Scores:
    norms = a.norm(dim=1) * b.norm(dim=1)
    return torch.where(norms > 0, (a * b).sum(1) / torch.where(norms > 0, norms, 1.0), 0.0)
