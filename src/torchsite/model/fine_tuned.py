"""Extractors that were trained elsewhere: a body, tuned at a share of the rate, and lateral sums.

The batch norms of a pretrained body keep their statistics in training: batches of a few pictures would spoil
them. A body of random weights is an ordinary part of the model: full rate, statistics of its own.
"""

from collections.abc import Sequence
from typing import Self

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from torchsite.errors import ConfigError
from torchsite.model.blocks import DepthwiseConv2d, PointwiseConv2d
from torchsite.model.extractor import FeatureExtractor, ParameterGroup
from torchsite.model.lateral_sum import LateralSum
from torchsite.shapes import Features, Images


class FineTuned(FeatureExtractor):
    """The maps of `body`, of these widths, brought to `depth` features; a `fine_tuning` of 0 freezes it."""

    def __init__(
        self,
        body: nn.Module,
        widths: Sequence[int],
        depth: int,
        common: int,
        fine_tuning: float,
        has_learnt: bool = True,
    ) -> None:
        super().__init__()
        if not 0 <= fine_tuning <= 1:
            raise ConfigError(
                f"fine_tuning: expected a share of the learning rate, 0 to 1, got {fine_tuning}"
            )
        self.has_learnt = has_learnt
        self.fine_tuning = fine_tuning if has_learnt else 1.0
        self.body = prepared(body).requires_grad_(self.fine_tuning > 0)
        self.answer = LateralSum(widths, common, depth)

    def forward(self, images: Images) -> Features:
        """Raw features at the resolution of the finest map."""
        return self.answer(self.body(images))

    def train(self, mode: bool = True) -> Self:
        """Training mode for all but the batch norms of a pretrained body."""
        super().train(mode)
        if self.has_learnt:
            for part in self.body.modules():
                if isinstance(part, _BatchNorm):
                    part.training = False
        return self

    def parameter_groups(self) -> list[ParameterGroup]:
        """The body is tuned at its share of the rate."""
        return [
            ParameterGroup(tuple(self.body.parameters()), self.fine_tuning),
            ParameterGroup(tuple(self.answer.parameters())),
        ]


def prepared(network: nn.Module) -> nn.Module:
    """The same function and weights, without in-place operations and with safe strides.

    Hooks see every activation then. `PointwiseConv2d` explains why 1×1 convolutions with a stride are not
    safe, `DepthwiseConv2d` why depthwise convolutions are slow.
    """
    for module in network.modules():
        if getattr(module, "inplace", None) is True:
            module.inplace = False  # type: ignore[assignment]  # a flag of activations
        for name, child in module.named_children():
            if _strides_over_points(child):
                setattr(module, name, _safe(child))
            elif type(child) is nn.Conv2d and child.groups == child.in_channels > 1:
                child.__class__ = DepthwiseConv2d
    return network


def _strides_over_points(module: nn.Module) -> bool:
    return (
        type(module) is nn.Conv2d
        and module.kernel_size == (1, 1)
        and module.stride != (1, 1)
        and module.padding == (0, 0)
        and module.groups == 1
    )


def _safe(conv: nn.Module) -> PointwiseConv2d:
    assert isinstance(conv, nn.Conv2d)
    safe = PointwiseConv2d(conv.in_channels, conv.out_channels, conv.stride, conv.bias is not None)  # type: ignore[arg-type]
    safe.weight, safe.bias = conv.weight, conv.bias
    return safe.train(conv.training)
