"""The few building blocks that extractors and generators share.

All activations are modules of their own and none works in place, so that hooks and modified backward
passes see every one of them.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import nn

from torchsite.errors import ConfigError, did_you_mean
from torchsite.shapes import Maps, Size

Built = TypeVar("Built", bound=nn.Module)


def conv_block(
    inputs: int, outputs: int, stride: int = 1, kernel: int = 3, *, pool: bool = False
) -> nn.Sequential:
    """Convolution, max pooling by 2 if asked for, batch norm, ReLU."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
    return nn.Sequential(conv, *([halve()] if pool else []), nn.BatchNorm2d(outputs), nn.ReLU())


class PointwiseConv2d(nn.Conv2d):
    """A 1×1 convolution that first takes every `stride`-th cell, and then has a stride of 1.

    The same function and the same weights as a strided `nn.Conv2d`. That one's gradient of the weights, in
    torch 2.13 on a processor with AVX2 and nothing newer, writes beyond its memory if the maps are channels
    last and their channels no multiple of 8. It is faster, too: what is not needed is not multiplied.
    """

    def __init__(self, inputs: int, outputs: int, stride: int = 1, bias: bool = True) -> None:
        super().__init__(inputs, outputs, 1, stride=stride, bias=bias)

    def forward(self, maps: Maps) -> Maps:
        """A pool of one cell takes every `stride`-th and, unlike a slice, keeps the layout of the memory."""
        if self.stride != (1, 1):
            maps = F.max_pool2d(maps, 1, self.stride)
        return F.conv2d(maps, self.weight, self.bias)


class DepthwiseConv2d(nn.Conv2d):
    """A convolution of each channel by itself that is float32 where bfloat16 is slow, also under autocast.

    The same function and the same weights as `nn.Conv2d` with `groups`. In bfloat16 the gradients of torch
    2.13 take 3 times as long for 5×5 kernels, and 10 to 100 times as long where there is a stride: a
    step of EfficientNet-Lite0 takes 0.26 s for 25 pictures with this, 0.33 s in float32 and 0.57 s without.
    Without gradients, or with fixed weights and no stride, bfloat16 is the faster one.
    """

    def forward(self, maps: Maps) -> Maps:
        """In the precision of the weights where bfloat16 would be slow; as usual elsewhere."""
        slow = torch.is_grad_enabled() and (self.weight.requires_grad or self.stride != (1, 1))
        if not slow or maps.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
            return super().forward(maps)
        with torch.autocast("cpu", enabled=False):
            return super().forward(maps.to(self.weight.dtype)).to(maps.dtype)


def upsample(maps: Maps, size: Sequence[int]) -> Maps:
    """Bilinear upsampling by 2, cropped to a size: smooth, so no checkerboard can arise."""
    doubled = F.interpolate(maps, scale_factor=2, mode="bilinear", align_corners=False)
    return doubled[..., : size[0], : size[1]]


def halvings(size: Size, times: int) -> list[Size]:
    """The sizes of maps that are halved (rounded up) again and again, the given one first."""
    sizes = [size]
    for _ in range(times):
        rows, cols = sizes[-1]
        sizes.append(((rows + 1) // 2, (cols + 1) // 2))
    return sizes


def n_parameters(module: nn.Module) -> int:
    """How many trainable numbers a module has."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def halve() -> nn.MaxPool2d:
    """Max pooling by 2 that keeps the last odd row and column."""
    return nn.MaxPool2d(2, ceil_mode=True)


def build_by_name(
    what: str,
    name: str,
    table: Mapping[str, Callable[..., Built]],
    given: tuple[Any, ...],
    options: Mapping[str, Any],
) -> Built:
    """A part from its table; unknown names and options are errors that name the nearest known one."""
    if name not in table:
        raise ConfigError(f"no {what} {name!r}: {did_you_mean(name, table)}")
    known = list(signature(table[name]).parameters)[len(given) :]
    for option in options:
        if option not in known:
            raise ConfigError(f"{what} {name!r} has no option {option!r}: {did_you_mean(option, known)}")
    try:
        return table[name](*given, **options)
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        raise ConfigError(f"{what} {name!r} cannot be built with {dict(options)}: {error}") from error
