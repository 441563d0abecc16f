"""How generators read features: down to one code for each picture, or to maps that stay spatial."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from torchsite.model.blocks import conv_block, halve, halvings
from torchsite.shapes import Features, Maps, Size

WIDTHS = (24, 48, 96)
CODE = 128
SPATIAL_WIDTHS = (32, 64, 128)


class Encoder(nn.Module):
    """Reads the features down to an eighth of their resolution, then to one code per picture."""

    any_size = False

    def __init__(self, depth: int, size: Size, widths: Sequence[int] = WIDTHS, code: int = CODE) -> None:
        super().__init__()
        self.layers = nn.Sequential(conv_block(depth, widths[0]))
        for before, after in pairwise(widths):
            self.layers.extend([halve(), conv_block(before, after), conv_block(after, after)])
        self.layers.append(halve())
        self.n_codes = code
        rows, cols = halvings(size, len(widths))[-1]
        self.code = nn.Sequential(
            nn.Linear(widths[-1] * rows * cols, code, bias=False), nn.BatchNorm1d(code), nn.ReLU()
        )

    def forward(self, features: Features) -> torch.Tensor:
        """One code per picture: which things are seen, and in which pose."""
        return self.code(self.layers(features).flatten(1))

    def read(self, features: Features) -> tuple[list[Features], torch.Tensor]:
        """The maps before each halving, finest first, and the code."""
        maps, current = [], features
        for layer in self.layers:
            if isinstance(layer, nn.MaxPool2d):
                maps.append(current)
            current = layer(current)
        return maps, self.code(current.flatten(1))


class SpatialEncoder(nn.Module):
    """Reads the features at falling resolutions and keeps them spatial."""

    any_size = True

    def __init__(self, depth: int, size: Size, widths: Sequence[int] = SPATIAL_WIDTHS) -> None:
        super().__init__()
        del size  # any will do
        self.stages = nn.ModuleList([conv_block(depth, widths[0])])
        for before, after in pairwise(widths):
            self.stages.append(nn.Sequential(conv_block(before, after, pool=True), conv_block(after, after)))
        self.n_codes = widths[-1]

    def read(self, features: Features) -> list[Features]:
        """The maps of all resolutions, finest first."""
        maps = [self.stages[0](features)]
        for stage in self.stages[1:]:
            maps.append(stage(maps[-1]))
        return maps

    def forward(self, features: Features) -> torch.Tensor:
        """One code per picture, the mean of the coarsest maps: the same wherever things are."""
        return self.read(features)[-1].mean((-2, -1))


def channels_last(maps: Maps) -> Maps:
    """The memory layout in which convolutions are fastest."""
    return maps.contiguous(memory_format=torch.channels_last)
