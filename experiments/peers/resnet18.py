"""ResNet-18 as the paper's large extractor, with all four stages."""

from collections.abc import Sequence

from torch import nn

from torchsite.model.blocks import PointwiseConv2d, conv_block
from torchsite.model.extractor import FeatureExtractor
from torchsite.model.lateral_sum import LateralSum
from torchsite.shapes import Features, Images, Size


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a skip (He et al. 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = conv_block(inputs, outputs, stride)
        self.second = nn.Sequential(
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)
        )
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(
                PointwiseConv2d(inputs, outputs, stride, bias=False), nn.BatchNorm2d(outputs)
            )
        self.relu = nn.ReLU()

    def forward(self, maps: Features) -> Features:
        """relu(f(x) + skip(x))."""
        return self.relu(self.second(self.first(maps)) + self.skip(maps))


class ResNet18(FeatureExtractor):
    """All four stages of ResNet-18; lateral sums bring the answer back to the second stage's resolution.

    `large_stem` is the original 7×7 stem with stride 4 in all; pictures above 64 pixels get it unless told.
    """

    def __init__(
        self,
        channels: int,
        size: Size,
        depth: int = 16,
        large_stem: bool | None = None,
        widths: Sequence[int] = (64, 128, 256, 512),
        common: int = 64,
    ) -> None:
        super().__init__()
        large_stem = min(size) > 64 if large_stem is None else large_stem
        self.stem = (
            nn.Sequential(conv_block(channels, widths[0], 2, kernel=7), nn.MaxPool2d(3, 2, padding=1))
            if large_stem
            else conv_block(channels, widths[0])
        )
        befores = (widths[0], *widths[:-1])
        self.stages = nn.ModuleList(
            nn.Sequential(BasicBlock(before, after, 1 if i == 0 else 2), BasicBlock(after, after, 1))
            for i, (before, after) in enumerate(zip(befores, widths, strict=True))
        )
        self.first_answer = 0 if large_stem else 1
        self.answer = LateralSum(widths[self.first_answer :], common, depth)

    def forward(self, images: Images) -> Features:
        """Raw features at half (small stem) or a quarter (large stem) of the resolution."""
        maps = [self.stem(images)]
        for stage in self.stages:
            maps.append(stage(maps[-1]))
        return self.answer(maps[1 + self.first_answer :])
