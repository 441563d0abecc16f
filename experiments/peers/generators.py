"""Four more forms of the generator, which the study of generators compares."""

from collections.abc import Sequence

import torch
from torch import nn

from torchsite.model.blocks import conv_block, halvings, upsample
from torchsite.model.encoder import CODE, WIDTHS, Encoder, channels_last
from torchsite.shapes import Features, Maps, Prototypes, Size


class EncodedGenerator(nn.Module):
    """A generator that reads the features with an `Encoder`; what differs is how it draws."""

    def __init__(self, depth: int, size: Size, n_classes: int, widths: Sequence[int], code: int) -> None:
        super().__init__()
        self.shape = (n_classes, depth, *size)
        self.encoder = Encoder(depth, size, widths, code)

    def as_prototypes(self, drawn: Maps) -> Prototypes:
        """Channels of classes × depth as prototypes, cropped where doubling overshot an odd side."""
        return drawn[..., : self.shape[2], : self.shape[3]].unflatten(1, self.shape[:2])


class Doubled(nn.Module):
    """Bilinear upsampling by 2, cropped to a given size."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size

    def forward(self, maps: Maps) -> Maps:
        """Twice the rows and columns, then the wanted ones."""
        return upsample(maps, self.size)


class TrunkGenerator(EncodedGenerator):
    """One shared convolutional trunk draws, light per-class heads choose.

    The trunk grows from a quarter of the resolution by bilinear upsampling; each class adds only one
    3×3 kernel per feature channel, so a hundred classes more cost a few per cent.
    """

    def __init__(
        self,
        depth: int,
        size: Size,
        n_classes: int,
        widths: Sequence[int] = WIDTHS,
        code: int = CODE,
        trunk: Sequence[int] = (48, 32, 16),
    ) -> None:
        super().__init__(depth, size, n_classes, widths, code)
        _, half, quarter = halvings(size, 2)
        self.start = (trunk[0], *quarter)
        self.unfold = nn.Sequential(nn.Linear(code, trunk[0] * quarter[0] * quarter[1]), nn.ReLU())
        self.trunk = nn.Sequential(
            conv_block(trunk[0], trunk[0]),
            Doubled(half),
            conv_block(trunk[0], trunk[1]),
            Doubled(size),
            conv_block(trunk[1], trunk[2]),
        )
        self.heads = nn.Conv2d(trunk[2], n_classes * depth, 3, padding=1)

    def forward(self, features: Features) -> Prototypes:
        """Raw prototypes of all classes."""
        start = self.unfold(self.encoder(features)).unflatten(1, self.start)
        return self.as_prototypes(self.heads(self.trunk(channels_last(start))))


class ShuffleGenerator(EncodedGenerator):
    """A trunk at a quarter of the resolution whose heads draw 4×4 pixels at once by pixel shuffle."""

    def __init__(
        self,
        depth: int,
        size: Size,
        n_classes: int,
        widths: Sequence[int] = WIDTHS,
        code: int = CODE,
        trunk: int = 48,
    ) -> None:
        super().__init__(depth, size, n_classes, widths, code)
        quarter = halvings(size, 2)[-1]
        self.start = (trunk, *quarter)
        self.unfold = nn.Sequential(nn.Linear(code, trunk * quarter[0] * quarter[1]), nn.ReLU())
        self.trunk = nn.Sequential(conv_block(trunk, trunk), conv_block(trunk, trunk))
        self.heads = nn.Conv2d(trunk, n_classes * depth * 16, 3, padding=1)
        self.shuffle = nn.PixelShuffle(4)

    def forward(self, features: Features) -> Prototypes:
        """Raw prototypes of all classes."""
        start = self.unfold(self.encoder(features)).unflatten(1, self.start)
        drawn = self.shuffle(self.heads(self.trunk(channels_last(start))))
        return self.as_prototypes(drawn)


class TransposedGenerator(EncodedGenerator):
    """The authors' form: per class a decoder of its own, as grouped transposed convolutions."""

    def __init__(
        self,
        depth: int,
        size: Size,
        n_classes: int,
        widths: Sequence[int] = WIDTHS,
        code: int = CODE,
        trunk: Sequence[int] = (32, 16),
    ) -> None:
        super().__init__(depth, size, n_classes, widths, code)
        quarter = halvings(size, 2)[-1]
        first, second = (n_classes * width for width in trunk)
        self.start = (first, *quarter)
        self.unfold = nn.Sequential(nn.Linear(code, first * quarter[0] * quarter[1]), nn.ReLU())
        self.decoders = nn.Sequential(
            nn.ConvTranspose2d(first, second, 4, stride=2, padding=1, groups=n_classes),
            nn.ReLU(),
            nn.ConvTranspose2d(second, n_classes * depth, 4, stride=2, padding=1, groups=n_classes),
        )

    def forward(self, features: Features) -> Prototypes:
        """Raw prototypes of all classes."""
        drawn = self.decoders(self.unfold(self.encoder(features)).unflatten(1, self.start))
        return self.as_prototypes(drawn)


class DenseGenerator(EncodedGenerator):
    """Per class one dense layer from a code of its own to all pixels: fast, but knows no neighbourhood."""

    def __init__(
        self,
        depth: int,
        size: Size,
        n_classes: int,
        widths: Sequence[int] = WIDTHS,
        code: int = CODE,
        rank: int = 64,
    ) -> None:
        super().__init__(depth, size, n_classes, widths, code)
        self.codes = nn.Sequential(
            nn.Linear(code, n_classes * rank), nn.ReLU(), nn.Unflatten(1, (n_classes, rank))
        )
        pixels = depth * size[0] * size[1]
        self.weight = nn.Parameter(torch.randn(n_classes, rank, pixels) / rank**0.5)
        self.bias = nn.Parameter(torch.zeros(n_classes, pixels))

    def forward(self, features: Features) -> Prototypes:
        """Raw prototypes of all classes."""
        drawn = torch.einsum("nkr,krp->nkp", self.codes(self.encoder(features)), self.weight)
        return (drawn + self.bias).unflatten(2, self.shape[1:])
