"""Features that see few pixels: evidence summed over them is a sum over patches."""

from torch import nn

from torchsite.errors import ConfigError
from torchsite.model.blocks import conv_block, halve
from torchsite.model.extractor import FeatureExtractor
from torchsite.shapes import Features, Images, Size


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
