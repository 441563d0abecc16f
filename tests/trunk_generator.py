"""A generator for tests, known as "trunk" once imported: recorded losses were made with it."""

from collections.abc import Sequence

from torch import nn

from torchsite.model import GENERATORS
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


GENERATORS.update(trunk=TrunkGenerator)
