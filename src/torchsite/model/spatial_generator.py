"""The generator that stays spatial: the one of the larger models."""

from collections.abc import Sequence

from torch import nn

from torchsite.errors import ConfigError
from torchsite.model.blocks import conv_block, upsample
from torchsite.model.encoder import SPATIAL_WIDTHS, SpatialEncoder, channels_last
from torchsite.shapes import Features, Maps, Prototypes, Size


class SpatialTrunk(nn.Module):
    """Lateral sums without a flattened code, so pose and place are kept.

    The coarsest maps and their mean over the picture have the class; finer resolutions add the place.
    """

    def __init__(self, depth: int, size: Size, widths: Sequence[int], trunk: Sequence[int]) -> None:
        super().__init__()
        if len(trunk) != len(widths):
            raise ConfigError(f"trunk: expected one width for each of {tuple(widths)}, got {tuple(trunk)}")
        self.encoder = SpatialEncoder(depth, size, widths)
        self.summary = nn.Conv2d(widths[-1], trunk[0], 1)
        self.laterals = nn.ModuleList(
            nn.Conv2d(width, drawn, 1) for width, drawn in zip(reversed(widths), trunk, strict=True)
        )
        self.rectify = nn.ModuleList(nn.ReLU() for _ in trunk)
        self.blocks = nn.ModuleList(
            conv_block(drawn, after) for drawn, after in zip(trunk, [*trunk[1:], trunk[-1]], strict=True)
        )

    def forward(self, features: Features) -> Maps:
        """Maps of the features' resolution, as many as the last width of the trunk."""
        maps = self.encoder.read(channels_last(features))[::-1]
        drawn = self.summary(maps[0].mean((-2, -1), keepdim=True))
        for i, (lateral, rectify, block) in enumerate(
            zip(self.laterals, self.rectify, self.blocks, strict=True)
        ):
            drawn = block(rectify(lateral(maps[i]) + drawn))
            if i + 1 < len(maps):
                drawn = upsample(drawn, maps[i + 1].shape[-2:])
        return drawn


class SpatialGenerator(SpatialTrunk):
    """Prototypes by a convolution on the maps of the trunk."""

    any_size = True

    def __init__(
        self,
        depth: int,
        size: Size,
        n_classes: int,
        widths: Sequence[int] = SPATIAL_WIDTHS,
        trunk: Sequence[int] = (64, 32, 32),
    ) -> None:
        super().__init__(depth, size, widths, trunk)
        self.shape = (n_classes, depth)
        self.heads = nn.Conv2d(trunk[-1], n_classes * depth, 3, padding=1)

    def forward(self, features: Features) -> Prototypes:
        """Raw prototypes of all classes."""
        return self.heads(super().forward(features)).unflatten(1, self.shape)
