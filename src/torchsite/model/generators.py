"""Prototype generators G: from features to one prototype per class, all classes at once.

A generator maps features (batch, depth, rows, cols) to *raw* prototypes (batch, classes, depth, rows,
cols); the model bounds them. The comparison that chose the default is in docs/design/generators.md. A
generator that takes features of any size says so: `any_size = True`. One that knows a shorter way to the
evidence than by drawing all prototypes has `fused(features, bound)`, which returns what one pass found
(`site.Forward`, or what behaves like it).
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

from torch import nn

from torchsite.errors import ConfigError
from torchsite.model.blocks import build_by_name, conv_block, halvings, upsample
from torchsite.model.encoder import CODE, WIDTHS, Encoder, SpatialEncoder, channels_last
from torchsite.model.extractor import tried
from torchsite.model.shared_patterns import SharedPatterns
from torchsite.model.spatial_generator import SpatialGenerator
from torchsite.model.two_scale_generator import TwoScaleGenerator
from torchsite.modes import evaluating
from torchsite.shapes import Features, Prototypes, Size

FeatureShape = tuple[int, int, int]


class LateralGenerator(nn.Module):
    """The default: one trunk draws for all classes, and sees the encoder's maps at each resolution.

    What must be drawn comes from the code, where it must be drawn from the maps: the pose need not pass
    through the bottleneck, so prototypes are sharper and follow the picture more closely. A trunk of fewer
    widths than the encoder's stops before the full resolution; the heads then draw 2×2 pixels at once (or
    4×4, and so on) by pixel shuffle: cells of many channels cost less than many cells of few.
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
        super().__init__()
        self.shape = (n_classes, depth, *size)
        self.encoder = Encoder(depth, size, widths, code)
        if not 0 < len(trunk) <= len(widths):
            raise ConfigError(
                f"trunk: expected a width for each of {tuple(widths)}, or fewer, got {tuple(trunk)}"
            )
        sizes = halvings(size, len(widths) - 1)[::-1]
        side = 2 ** (len(widths) - len(trunk))
        self.start = (trunk[0], *sizes[0])
        self.unfold = nn.Linear(code, trunk[0] * sizes[0][0] * sizes[0][1])
        self.laterals = nn.ModuleList(
            nn.Conv2d(width, drawn, 1) for width, drawn in zip(reversed(widths), trunk, strict=False)
        )
        self.rectify = nn.ModuleList(nn.ReLU() for _ in trunk)
        self.blocks = nn.ModuleList(
            conv_block(drawn, after) for drawn, after in zip(trunk, [*trunk[1:], trunk[-1]], strict=True)
        )
        kernel = 3 if side == 1 else 1  # of a coarse cell, the last block has seen the neighbours
        self.heads = nn.Conv2d(trunk[-1], n_classes * depth * side**2, kernel, padding=kernel // 2)
        self.shuffle = nn.Identity() if side == 1 else nn.PixelShuffle(side)

    def forward(self, features: Features) -> Prototypes:
        """Raw prototypes of all classes."""
        maps, code = self.encoder.read(features)
        drawn = channels_last(self.unfold(code).unflatten(1, self.start))
        for i, (lateral, rectify, block) in enumerate(
            zip(self.laterals, self.rectify, self.blocks, strict=True)
        ):
            drawn = block(rectify(drawn + lateral(maps[-1 - i])))
            if i + 1 < len(self.blocks):
                drawn = upsample(drawn, maps[-2 - i].shape[-2:])
        _, _, rows, cols = self.shape  # doubling overshoots odd sides
        return self.shuffle(self.heads(drawn))[..., :rows, :cols].unflatten(1, self.shape[:2])


GENERATORS: dict[str, Callable[..., nn.Module]] = {
    "lateral": LateralGenerator,
    "spatial": SpatialGenerator,
    "two_scales": TwoScaleGenerator,
    "shared_patterns": SharedPatterns,
}


def build_generator(
    name: str, features: FeatureShape, n_classes: int, options: Mapping[str, Any]
) -> nn.Module:
    """A generator by name; unknown names and options are errors."""
    depth, rows, cols = features
    return build_by_name("generator", name, GENERATORS, (depth, (rows, cols), n_classes), options)


def build_encoder(
    generator: str, features: FeatureShape, options: Mapping[str, Any]
) -> Encoder | SpatialEncoder:
    """The encoder that a generator of this name has, by itself; unknown names and options are errors."""
    depth, rows, cols = features
    table: dict[str, Callable[..., Encoder | SpatialEncoder]] = {
        name: encoder_of(name) for name in GENERATORS
    }
    return build_by_name("encoder of the generator", generator, table, (depth, (rows, cols)), options)


def encoder_of(generator: str) -> type[Encoder] | type[SpatialEncoder]:
    """Which kind of encoder the generator of this name reads with; one that reads nothing lends its size."""
    return SpatialEncoder if getattr(GENERATORS.get(generator), "any_size", False) else Encoder


def encoder_options(generator: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options of a generator that concern its encoder."""
    known = signature(encoder_of(generator)).parameters
    return {name: value for name, value in options.items() if name in known}


def check_prototypes(generator: nn.Module, features: FeatureShape, n_classes: int) -> None:
    """A generator must give one prototype of the features' shape for each class; found by trying."""
    with evaluating(generator):
        try:
            found = tuple(tried(generator, features).shape)
        except (RuntimeError, ValueError, IndexError) as error:
            raise ConfigError(f"the generator cannot take features of {features}: {error}") from error
    if found != (1, n_classes, *features):
        raise ConfigError(
            f"a generator must give (batch, classes, depth, rows, cols), here {(1, n_classes, *features)}; "
            f"this one gives {found}"
        )
