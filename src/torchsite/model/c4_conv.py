"""Kernels shared over quarter turns: turn the input and the output turns with it, exactly.

An *oriented* map holds each of its channels in four orientations, one group of channels after the other:
(batch, 4 · channels, rows, cols). Three convolutions connect plain and oriented maps (Cohen & Welling 2016):

| from | to | a kernel is used |
|---|---|---|
| plain | oriented | four times, turned: once for each orientation of the output |
| oriented | oriented | four times, turned, its inputs shifted from one orientation to the next |
| oriented | plain | turned for each orientation of the input, and summed |

Widths count all channels, so a network of shared kernels does the arithmetic of a plain one with the same
widths, and has a quarter of its parameters.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchsite.errors import ConfigError
from torchsite.model.blocks import conv_block
from torchsite.shapes import Maps

TURNS = 4


class C4Conv2d(nn.Module):
    """A convolution whose kernels are shared over quarter turns; its odd kernel keeps the size of the map."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int = 3,
        *,
        oriented_input: bool = True,
        oriented_output: bool = True,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.oriented_input, self.oriented_output = oriented_input, oriented_output
        outputs_each = _each(outputs) if oriented_output else outputs
        self.inputs_each = _each(inputs) if oriented_input else inputs
        free = inputs if oriented_input and oriented_output else self.inputs_each
        self.padding = kernel // 2
        self.weight = nn.Parameter(torch.empty(outputs_each, free, kernel, kernel))
        self.bias = nn.Parameter(torch.zeros(outputs_each)) if bias else None
        bound = (inputs * kernel**2) ** -0.5  # that of an ordinary convolution
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, maps: Maps) -> Maps:
        """An ordinary convolution with the kernels in all orientations."""
        bias: Tensor | None = self.bias
        if bias is not None and self.oriented_output:
            bias = bias.repeat(TURNS)
        return F.conv2d(maps, self.kernels(), bias, padding=self.padding)

    def kernels(self) -> Tensor:
        """All kernels, as an ordinary convolution has them."""
        if not self.oriented_input:
            turned = torch.cat([self._turned(self.weight, turn) for turn in range(TURNS)])
        elif not self.oriented_output:
            turned = torch.cat([self._turned(self.weight, turn) for turn in range(TURNS)], dim=1)
        else:
            weight = self.weight.unflatten(1, (TURNS, self.inputs_each))
            turned = torch.cat(
                [self._turned(weight.roll(turn, 1), turn).flatten(1, 2) for turn in range(TURNS)]
            )
        return turned.contiguous(memory_format=torch.channels_last)

    @staticmethod
    def _turned(weight: Tensor, turn: int) -> Tensor:
        return torch.rot90(weight, turn, (-2, -1))


class C4BatchNorm2d(nn.BatchNorm2d):
    """Batch norm with one mean and variance for the four orientations of a channel."""

    def __init__(self, channels: int) -> None:
        super().__init__(_each(channels))

    def forward(self, maps: Maps) -> Maps:
        """Orientations stand side by side, as if the picture were four times as wide: a view, no copy."""
        n, _, rows, cols = maps.shape
        wide = maps.permute(0, 2, 3, 1).reshape(n, rows, cols * TURNS, self.num_features)
        normed = super().forward(wide.permute(0, 3, 1, 2))
        channels = TURNS * self.num_features  # written out: an empty batch leaves nothing to infer it from
        return normed.permute(0, 2, 3, 1).reshape(n, rows, cols, channels).permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Layers:
    """Builds layers that share their kernels over quarter turns, or plain ones."""

    quarter_turns: bool = False

    def conv(
        self, inputs: int, outputs: int, kernel: int = 3, *, lift: bool = False, project: bool = False
    ) -> nn.Module:
        """A convolution with bias; `lift` takes a plain map, `project` gives one."""
        if not self.quarter_turns:
            return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)
        return C4Conv2d(
            inputs, outputs, kernel, oriented_input=not lift, oriented_output=not project, bias=True
        )

    def block(self, inputs: int, outputs: int, *, lift: bool = False, pool: bool = False) -> nn.Sequential:
        """Convolution, max pooling by 2 if asked for, batch norm, ReLU."""
        layers = list(conv_block(inputs, outputs))
        if self.quarter_turns:
            layers[0] = C4Conv2d(inputs, outputs, oriented_input=not lift)
            layers[1] = C4BatchNorm2d(outputs)
        if pool:
            layers.insert(1, nn.MaxPool2d(2, ceil_mode=True))
        return nn.Sequential(*layers)

    def pooled(self, maps: Maps) -> Tensor:
        """One number for each channel: the mean over the picture, and over orientations if there are any."""
        means = maps.mean((-2, -1))
        return means.unflatten(1, (TURNS, -1)).mean(1) if self.quarter_turns else means

    def pooled_width(self, channels: int) -> int:
        """How many numbers `pooled` gives."""
        return _each(channels) if self.quarter_turns else channels


def _each(channels: int) -> int:
    if channels % TURNS:
        raise ConfigError(f"shared over quarter turns, a width must be a multiple of 4, got {channels}")
    return channels // TURNS
