"""Maps of several resolutions summed at the highest."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import nn

from torchsite.model.blocks import conv_block
from torchsite.shapes import Features


class LateralSum(nn.Module):
    """From several resolutions to the highest: 1×1 convolutions to a common width, summed bottom up."""

    def __init__(self, widths: Sequence[int], common: int, depth: int) -> None:
        super().__init__()
        self.laterals = nn.ModuleList(nn.Conv2d(width, common, 1) for width in widths)
        self.smooth = conv_block(common, common)
        self.head = nn.Conv2d(common, depth, 1)

    def forward(self, maps: Sequence[Features]) -> Features:
        """`maps` run from high to low resolution; each sum is upsampled to its next neighbour."""
        total = self.laterals[-1](maps[-1])
        for lateral, finer in zip(reversed(self.laterals[:-1]), reversed(maps[:-1]), strict=True):
            size = finer.shape[-2:]
            total = lateral(finer) + F.interpolate(total, size=size, mode="bilinear", align_corners=False)
        return self.head(self.smooth(total))
