"""What all generators share: one convolutional encoder, and prototypes in their final shape."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from torchsite.model.blocks import conv_block, halve, halvings
from torchsite.shapes import Features, Maps, Prototypes, Size

WIDTHS = (24, 48, 96)
CODE = 128


class Encoder(nn.Module):
    """Reads the features down to an eighth of their resolution, then to one code per picture."""

    def __init__(self, depth: int, size: Size, widths: Sequence[int], code: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(conv_block(depth, widths[0]))
        for before, after in pairwise(widths):
            self.layers.extend([halve(), conv_block(before, after), conv_block(after, after)])
        self.layers.append(halve())
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


class EncodedGenerator(nn.Module):
    """A generator that reads the features with an `Encoder`; what differs is how it draws."""

    def __init__(self, depth: int, size: Size, n_classes: int, widths: Sequence[int], code: int) -> None:
        super().__init__()
        self.shape = (n_classes, depth, *size)
        self.encoder = Encoder(depth, size, widths, code)

    def as_prototypes(self, drawn: Maps) -> Prototypes:
        """Channels of classes × depth as prototypes, cropped where doubling overshot an odd side."""
        return drawn[..., : self.shape[2], : self.shape[3]].unflatten(1, self.shape[:2])


def channels_last(maps: Maps) -> Maps:
    """The memory layout in which convolutions are fastest."""
    return maps.contiguous(memory_format=torch.channels_last)
