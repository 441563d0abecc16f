"""Feature extractors F1: from a picture to features with a spatial layout.

An extractor maps (batch, channels, height, width) to *raw* features (batch, depth, rows, cols); the model
bounds them. Any module with such an output will do; the ones here are built by name. The
attributes of extractors are in `extractor.py`. To add one by name, add its builder to `EXTRACTORS`.

| name | for | parameters | output at 32×32 |
|---|---|---|---|
| identity | pictures whose pixels are the evidence (digits, glyphs) | 0 | the picture |
| small_cnn | the paper's small CNN | 0.9 M | 8×8 |
| pyramid | two CPU cores: convolutions down to 4×4, features at 16×16 | 1.6 M | 16×16 |
| two_scales | photographs: starts from ImageNet, evidence of small parts and of the whole | 3.5 M | 4×4 |
| efficientnet_lite0 | few pictures of 64 pixels or more: starts from ImageNet | 3.0 M | 4×4 |
| timm/NAME | any network of timm (`timm_backbone.py`) | | 4×4 |
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from torch import nn

from torchsite.errors import ConfigError
from torchsite.model.blocks import build_by_name, conv_block, halve
from torchsite.model.efficientnet import LITE0, MEAN, STD, Lite, imagenet_weights
from torchsite.model.extractor import FeatureExtractor, ImageShape, ParameterGroup
from torchsite.model.lateral_sum import LateralSum
from torchsite.model.timm_backbone import TimmExtractor
from torchsite.model.two_scales import TwoScales
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
    """Five 3×3 convolutions with two poolings; features at a quarter of the resolution."""

    def __init__(
        self,
        channels: int,
        size: Size,
        depth: int = 16,
        widths: Sequence[int] = (64, 128, 224),
    ) -> None:
        super().__init__()
        first, second, third = widths
        self.layers = nn.Sequential(
            conv_block(channels, first),
            halve(),
            conv_block(first, second),
            conv_block(second, second),
            halve(),
            conv_block(second, third),
            conv_block(third, third),
        )
        self.head = nn.Conv2d(third, depth, 1)

    def forward(self, images: Images) -> Features:
        """Raw features at a quarter of the resolution."""
        return self.head(self.layers(images))


class Pyramid(FeatureExtractor):
    """Convolutions down to an eighth of the resolution, lateral sums back to a half."""

    def __init__(
        self,
        channels: int,
        size: Size,
        depth: int = 16,
        widths: Sequence[int] = (32, 64, 192, 256),
        common: int = 64,
    ) -> None:
        super().__init__()
        self.stem = conv_block(channels, widths[0])
        self.stages = nn.ModuleList(
            nn.Sequential(conv_block(before, after, pool=True), conv_block(after, after))
            for before, after in pairwise(widths)
        )
        self.answer = LateralSum(widths[1:], common, depth)

    def forward(self, images: Images) -> Features:
        """Raw features at half the resolution."""
        maps = [self.stem(images)]
        for stage in self.stages:
            maps.append(stage(maps[-1]))
        return self.answer(maps[1:])


class EfficientNetLite(FeatureExtractor):
    """EfficientNet-Lite0 from ImageNet; lateral sums bring its maps back to an eighth of the resolution.

    `stride` is 8, or 4 for features at a quarter. `fine_tuning` is the learning rate of the pretrained
    weights as a share of the others'; with 0 they stay as they are.
    """

    mean, std = MEAN, STD
    pretrained = True

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
                f"efficientnet_lite0: expected three channels, a stride of 4 or 8 and "
                f"fine_tuning in [0, 1], got {channels}, {stride} and {fine_tuning}"
            )
        self.fine_tuning = fine_tuning
        self.stages = Lite(LITE0).requires_grad_(fine_tuning > 0)
        self.first, widths = LITE0.answers_from(stride)
        self.answer = LateralSum(widths, common, depth)

    def forward(self, images: Images) -> Features:
        """Raw features at an eighth or a quarter of the resolution."""
        return self.answer(self.stages(images)[self.first :])

    def load_pretrained(self) -> None:
        """The blocks as published."""
        self.stages.load_state_dict(imagenet_weights(LITE0))

    def parameter_groups(self) -> list[ParameterGroup]:
        """The blocks are tuned at their share of the rate."""
        return [
            ParameterGroup(tuple(self.stages.parameters()), self.fine_tuning),
            ParameterGroup(tuple(self.answer.parameters())),
        ]


# Builders by name: (channels, size, **options) → extractor. A name that ends in "/" is that of a family: its
# builder is given first what comes after the slash: "family/member" is `builder("member", channels, size)`.
EXTRACTORS: dict[str, Callable[..., FeatureExtractor]] = {
    "identity": Identity,
    "small_cnn": SmallCNN,
    "pyramid": Pyramid,
    "two_scales": TwoScales,
    "efficientnet_lite0": EfficientNetLite,
}
FAMILIES: dict[str, Callable[..., FeatureExtractor]] = {
    "timm/": TimmExtractor,
}


def build_extractor(name: str, image_shape: ImageShape, options: Mapping[str, Any]) -> FeatureExtractor:
    """An extractor by name, for pictures of one shape; unknown names and options are errors."""
    channels, height, width = image_shape
    family, slash, member = name.partition("/")
    if family == "torchvision" and slash:
        raise ConfigError(
            f"{name}: torchvision's networks have no names here any more: timm has the same ones, "
            "timm/NAME; or build it and pass it to SITE.from_classifier"
        )
    known: Mapping[str, Callable[..., FeatureExtractor]] = EXTRACTORS | FAMILIES
    if slash and family + slash in known:
        known = {name: partial(known[family + slash], member)}
    return build_by_name("feature extractor", name, known, (channels, (height, width)), options)
