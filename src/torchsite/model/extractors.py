"""Feature extractors F1: from a picture to features with a spatial layout.

An extractor maps (batch, channels, height, width) to *raw* features (batch, depth, rows, cols); the model
bounds them. Any module with such an output will do; the ones here are built by name. What an extractor may
say of itself stands in `extractor.py`. To add one by name, add its builder to `EXTRACTORS`.

| name | for | parameters | output at 32×32 |
|---|---|---|---|
| identity | pictures whose pixels are the evidence (digits, glyphs) | 0 | the picture |
| small_cnn | the paper's small CNN | 0.9 M | 8×8 |
| resnet18 | the paper's large one, all four stages | 11.3 M | 16×16 |
| pyramid | two CPU cores: recognises at 4×4, answers at 16×16 | 1.6 M | 16×16 |
| local | evidence of patches: features that see 14 pixels | 0.5 M | 16×16 |
| b_cos | B-cos networks, a peer of SITE (`b_cos.py`) | 0.3 M | 8×8 |
| efficientnet_lite0 | few pictures of 64 pixels or more: starts from ImageNet | 3.0 M | 4×4 |
| efficientnet_lite1, _lite2 | the same, slower and more accurate on ImageNet | 3.8 M, 4.4 M | 4×4 |
| timm/NAME, torchvision/NAME | any network of the two libraries (`libraries.py`) | | 4×4 |
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from torch import nn

from torchsite.errors import ConfigError
from torchsite.model.b_cos_network import BCosNetwork
from torchsite.model.blocks import PointwiseConv2d, build_by_name, conv_block, halve
from torchsite.model.c4_conv import Layers
from torchsite.model.efficientnet import LITE0, LITE1, LITE2, MEAN, STD, Lite, imagenet_weights
from torchsite.model.extractor import FeatureExtractor, ImageShape, ParameterGroup
from torchsite.model.lateral_sum import LateralSum
from torchsite.model.timm_backbone import TimmExtractor
from torchsite.model.torchvision_backbone import TorchvisionExtractor
from torchsite.shapes import Features, Images, Size


class Identity(FeatureExtractor):
    """z = x: the pixels are the features."""

    pixels = True

    def __init__(self, channels: int, size: Size, depth: int | None = None) -> None:
        super().__init__()
        if depth not in (None, channels):
            raise ConfigError(
                f"the identity has as many features as channels: expected {channels}, got {depth}"
            )
        self.mean, self.std = (0.0,) * channels, (1.0,) * channels

    def forward(self, images: Images) -> Features:
        """The pictures themselves."""
        return images


class SmallCNN(FeatureExtractor):
    """Five 3×3 convolutions with two poolings; the features stand at a quarter of the resolution.

    With `quarter_turns` the kernels are shared over quarter turns, as in the pyramid.
    """

    def __init__(
        self,
        channels: int,
        size: Size,
        depth: int = 16,
        widths: Sequence[int] = (64, 128, 224),
        quarter_turns: bool = False,
    ) -> None:
        super().__init__()
        layers = Layers(quarter_turns)
        first, second, third = widths
        self.layers = nn.Sequential(
            layers.block(channels, first, lift=True),
            halve(),
            layers.block(first, second),
            layers.block(second, second),
            halve(),
            layers.block(second, third),
            layers.block(third, third),
        )
        self.head = layers.conv(third, depth, 1, project=True)

    def forward(self, images: Images) -> Features:
        """Raw features at a quarter of the resolution."""
        return self.head(self.layers(images))


class Pyramid(FeatureExtractor):
    """Recognises at low resolution, answers at high: convolutions down to an eighth, sums back to a half.

    With `quarter_turns` the kernels are shared over quarter turns: turned by 90° a square picture of a
    multiple of eight pixels gives the turned features, exactly.
    """

    def __init__(
        self,
        channels: int,
        size: Size,
        depth: int = 16,
        widths: Sequence[int] = (32, 64, 192, 256),
        common: int = 64,
        quarter_turns: bool = False,
    ) -> None:
        super().__init__()
        layers = Layers(quarter_turns)
        self.stem = layers.block(channels, widths[0], lift=True)
        self.stages = nn.ModuleList(
            nn.Sequential(layers.block(before, after, pool=True), layers.block(after, after))
            for before, after in pairwise(widths)
        )
        self.answer = LateralSum(widths[1:], common, depth, layers)

    def forward(self, images: Images) -> Features:
        """Raw features at half the resolution."""
        maps = [self.stem(images)]
        for stage in self.stages:
            maps.append(stage(maps[-1]))
        return self.answer(maps[1:])


class LocalCNN(FeatureExtractor):
    """Looks at few pixels at a time: a feature sees no more than a patch (BagNet: Brendel & Bethge 2019).

    3×3 convolutions up to the receptive field of `patch` pixels, the first two at full resolution, the others
    at half of it; then only 1×1. Evidence that is summed over its features is a sum over patches.
    """

    def __init__(
        self,
        channels: int,
        size: Size,
        depth: int = 16,
        width: int = 96,
        patch: int = 14,
        n_mixing: int = 4,
    ) -> None:
        super().__init__()
        n_coarse, rest = divmod(patch - 6, 4)
        if n_coarse < 0 or rest:
            raise ConfigError(f"patch: expected 6, 10, 14 … pixels, got {patch}")
        fine = [conv_block(channels, width), conv_block(width, width), halve()]
        coarse = [conv_block(width, width) for _ in range(n_coarse)]
        mixing = [conv_block(width, width, kernel=1) for _ in range(n_mixing)]
        self.layers = nn.Sequential(*fine, *coarse, *mixing)
        self.head = nn.Conv2d(width, depth, 1)

    def forward(self, images: Images) -> Features:
        """Raw features at half the resolution."""
        return self.head(self.layers(images))


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


class EfficientNetLite(FeatureExtractor):
    """EfficientNet-Lite from ImageNet; lateral sums bring its answer back to an eighth of the resolution.

    `stride` is 8, or 4 for an answer at a quarter. `fine_tuning` is the learning rate of the pretrained
    weights as a share of the others'; with 0 they stay as they are.
    """

    mean, std = MEAN, STD
    pretrained = True
    variant = LITE0

    def __init__(
        self,
        channels: int,
        size: Size,
        depth: int = 16,
        stride: int = 8,
        common: int = 64,
        fine_tuning: float = 0.1,
    ) -> None:
        super().__init__()
        if channels != 3 or stride not in (4, 8) or not 0 <= fine_tuning <= 1:
            raise ConfigError(
                f"efficientnet_{self.variant.name}: expected three channels, a stride of 4 or 8 and "
                f"fine_tuning in [0, 1], got {channels}, {stride} and {fine_tuning}"
            )
        self.fine_tuning = fine_tuning
        self.stages = Lite(self.variant).requires_grad_(fine_tuning > 0)
        self.first, widths = self.variant.answers_from(stride)
        self.answer = LateralSum(widths, common, depth)

    def forward(self, images: Images) -> Features:
        """Raw features at an eighth or a quarter of the resolution."""
        return self.answer(self.stages(images)[self.first :])

    def load_pretrained(self) -> None:
        """The blocks as published."""
        self.stages.load_state_dict(imagenet_weights(self.variant))

    def parameter_groups(self) -> list[ParameterGroup]:
        """The blocks are tuned at their share of the rate."""
        return [
            ParameterGroup(tuple(self.stages.parameters()), self.fine_tuning),
            ParameterGroup(tuple(self.answer.parameters())),
        ]


class EfficientNetLite1(EfficientNetLite):
    """Deeper than Lite0."""

    variant = LITE1


class EfficientNetLite2(EfficientNetLite):
    """Deeper and wider than Lite0."""

    variant = LITE2


# Builders by name: (channels, size, **options) → extractor. A name that ends in "/" is that of a family: its
# builder is given first what comes after the slash: "family/member" is `builder("member", channels, size)`.
EXTRACTORS: dict[str, Callable[..., FeatureExtractor]] = {
    "identity": Identity,
    "small_cnn": SmallCNN,
    "resnet18": ResNet18,
    "pyramid": Pyramid,
    "local": LocalCNN,
    "b_cos": BCosNetwork,
    "efficientnet_lite0": EfficientNetLite,
    "efficientnet_lite1": EfficientNetLite1,
    "efficientnet_lite2": EfficientNetLite2,
}
FAMILIES: dict[str, Callable[..., FeatureExtractor]] = {
    "timm/": TimmExtractor,
    "torchvision/": TorchvisionExtractor,
}


def build_extractor(name: str, image_shape: ImageShape, options: Mapping[str, Any]) -> FeatureExtractor:
    """An extractor by name, for pictures of one shape; unknown names and options are errors."""
    channels, height, width = image_shape
    family, slash, member = name.partition("/")
    known: Mapping[str, Callable[..., FeatureExtractor]] = EXTRACTORS | FAMILIES
    if slash and family + slash in known:
        known = {name: partial(known[family + slash], member)}
    return build_by_name("feature extractor", name, known, (channels, (height, width)), options)
