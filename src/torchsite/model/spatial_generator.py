"""The generator that stays spatial: what the larger models here draw their prototypes with."""

from collections.abc import Sequence

from torch import nn

from torchsite.errors import ConfigError
from torchsite.model.blocks import upsample
from torchsite.model.c4_conv import Layers
from torchsite.model.encoder import SPATIAL_WIDTHS, SpatialEncoder, channels_last
from torchsite.shapes import Features, Prototypes, Size


class SpatialGenerator(nn.Module):
    """Lateral sums without a flattened code: pose and place are never forgotten, only summed up.

    The coarsest maps and their mean over the picture say what is seen; every resolution adds where. It can
    share its kernels over quarter turns, so that prototypes turn with the features by construction.
    """

    any_size = True

    def __init__(
        self,
        depth: int,
        size: Size,
        n_classes: int,
        widths: Sequence[int] = SPATIAL_WIDTHS,
        trunk: Sequence[int] = (64, 32, 32),
        quarter_turns: bool = False,
    ) -> None:
        super().__init__()
        if len(trunk) != len(widths):
            raise ConfigError(f"trunk: expected one width for each of {tuple(widths)}, got {tuple(trunk)}")
        layers = Layers(quarter_turns)
        self.shape = (n_classes, depth)
        self.encoder = SpatialEncoder(depth, size, widths, quarter_turns)
        self.summary = layers.conv(widths[-1], trunk[0], 1)
        self.laterals = nn.ModuleList(
            layers.conv(width, drawn, 1) for width, drawn in zip(reversed(widths), trunk, strict=True)
        )
        self.rectify = nn.ModuleList(nn.ReLU() for _ in trunk)
        self.blocks = nn.ModuleList(
            layers.block(drawn, after) for drawn, after in zip(trunk, [*trunk[1:], trunk[-1]], strict=True)
        )
        self.heads = layers.conv(trunk[-1], n_classes * depth, project=True)

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
