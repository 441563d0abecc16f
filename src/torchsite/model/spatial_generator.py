"""The generator that stays spatial: what the larger models here draw their prototypes with."""

from collections.abc import Sequence

from torch import nn

from torchsite.errors import ConfigError
from torchsite.model.blocks import conv_block, upsample
from torchsite.model.encoder import SPATIAL_WIDTHS, SpatialEncoder, channels_last
from torchsite.shapes import Features, Prototypes, Size


class SpatialGenerator(nn.Module):
    """Lateral sums without a flattened code: pose and place are never forgotten, only summed up.

    The coarsest maps and their mean over the picture say what is seen; every resolution adds where.
    """

    any_size = True

    def __init__(
        self,
        depth: int,
        size: Size,
        n_classes: int,
        widths: Sequence[int] = SPATIAL_WIDTHS,
        trunk: Sequence[int] = (64, 32, 32),
    ) -> None:
        super().__init__()
        if len(trunk) != len(widths):
            raise ConfigError(f"trunk: expected one width for each of {tuple(widths)}, got {tuple(trunk)}")
        self.shape = (n_classes, depth)
        self.encoder = SpatialEncoder(depth, size, widths)
        self.summary = nn.Conv2d(widths[-1], trunk[0], 1)
        self.laterals = nn.ModuleList(
            nn.Conv2d(width, drawn, 1) for width, drawn in zip(reversed(widths), trunk, strict=True)
        )
        self.rectify = nn.ModuleList(nn.ReLU() for _ in trunk)
        self.blocks = nn.ModuleList(
            conv_block(drawn, after) for drawn, after in zip(trunk, [*trunk[1:], trunk[-1]], strict=True)
        )
        self.heads = nn.Conv2d(trunk[-1], n_classes * depth, 3, padding=1)

    def forward(self, features: Features) -> Prototypes:
        """Raw prototypes of all classes."""
        maps = self.encoder.read(channels_last(features))[::-1]
        drawn = self.summary(maps[0].mean((-2, -1), keepdim=True))
        for i, (lateral, rectify, block) in enumerate(
            zip(self.laterals, self.rectify, self.blocks, strict=True)
        ):
            drawn = block(rectify(lateral(maps[i]) + drawn))
            if i + 1 < len(maps):
                drawn = upsample(drawn, maps[i + 1].shape[-2:])
        return self.heads(drawn).unflatten(1, self.shape)
