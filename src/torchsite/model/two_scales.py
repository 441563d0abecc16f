"""Features at two scales: small parts seen by themselves, and the whole picture.

    z = [ tanh(a) ⊙ tanh(b) ; tanh(c) / √8 ]      a, b at a quarter of the resolution, c at an eighth

A feature of a part (a, b) sees 19 pixels, so evidence made of it stands where its cause is: locality by
construction. It is a product, so that it may say "this and that". The features of the whole (c) come from all
of EfficientNet-Lite; each of their cells covers 2 × 2 cells of the parts, and its features and prototypes are
shrunk, so that the four products count half of one. In training the parts say first what they can
(`ScaledForward.stages`), and the whole adds what no part can say: what a small thing decides is said at its
place.
"""

import torch
import torch.nn.functional as F
from torch import nn

from torchsite.errors import ConfigError
from torchsite.model.blocks import conv_block
from torchsite.model.efficientnet import LITE0, LITE1, LITE2, MEAN, STD, Variant
from torchsite.model.extractor import FeatureExtractor, ParameterGroup
from torchsite.model.folded_lite import FINE, FoldedLite
from torchsite.model.lateral_sum import LateralSum
from torchsite.shapes import Features, Images, Maps, Size

VARIANTS: dict[str, Variant] = {"lite0": LITE0, "lite1": LITE1, "lite2": LITE2}
N_PARTS = 64
SHRINKING = 8**-0.5
NEARLY = 1 - 1e-6


class TwoScales(FeatureExtractor):
    """`parts` features of small parts and `depth` of the whole picture, from EfficientNet-Lite (`variant`).

    `fine_tuning` is the learning rate of the pretrained weights as a share of the others'.
    """

    mean, std = MEAN, STD
    pretrained = True
    evidence_gain = 9.0  # a single part may decide

    def __init__(
        self,
        channels: int,
        size: Size,
        parts: int = N_PARTS,
        depth: int = 16,
        hidden: int = 192,
        common: int = 64,
        variant: str = "lite0",
        fine_tuning: float = 0.15,
    ) -> None:
        super().__init__()
        if channels != 3 or variant not in VARIANTS or not 0 < fine_tuning <= 1:
            raise ConfigError(
                f"two_scales: expected three channels, a variant of {', '.join(VARIANTS)} and fine_tuning in "
                f"(0, 1], got {channels}, {variant!r} and {fine_tuning}"
            )
        del size  # any will do
        self.fine_tuning = fine_tuning
        self.stages = FoldedLite(VARIANTS[variant])
        finest, *coarser = self.stages.widths
        self.parts = nn.Sequential(
            conv_block(finest, hidden, kernel=1),
            nn.Conv2d(hidden, 2 * parts, 1),
        )
        self.whole = LateralSum(coarser, common, depth)

    def forward(self, images: Images) -> Features:
        """Raw features at a quarter of the resolution: those of parts, then those of the whole."""
        return atanh(self.bounded(images))

    def bounded(self, images: Images) -> Features:
        """The same after a tanh: what SITE reads, the short way."""
        maps = self.stages(images)
        this, that = wide(self.parts(maps[FINE])).chunk(2, 1)
        parts = torch.tanh(this) * torch.tanh(that)
        whole = torch.tanh(wide(self.whole(maps[FINE + 1 :]))) * SHRINKING
        return torch.cat([parts, spread(whole, parts)], 1)

    def load_pretrained(self) -> None:
        """The blocks as published, folded."""
        self.stages.load_pretrained()

    def parameter_groups(self) -> list[ParameterGroup]:
        """What learns of the blocks is tuned at its share of the rate."""
        return [
            ParameterGroup(tuple(p for p in self.stages.parameters() if p.requires_grad), self.fine_tuning),
            ParameterGroup((*self.parts.parameters(), *self.whole.parameters())),
        ]


def shrunk(raw: Maps) -> Maps:
    """The raw value whose tanh is smaller by `SHRINKING`; never in half precision."""
    return atanh(torch.tanh(wide(raw)) * SHRINKING)


def wide(maps: Maps) -> Maps:
    """At least float32."""
    return maps.to(torch.promote_types(maps.dtype, torch.float32))


def atanh(bounded: Maps) -> Maps:
    """The inverse of tanh, finite at its ends too."""
    return (NEARLY * bounded).atanh()


def spread(coarse: Maps, fine: Maps) -> Maps:
    """Each cell over 2 × 2 cells, as many as the finer maps have."""
    return F.interpolate(coarse, scale_factor=2, mode="nearest")[..., : fine.shape[-2], : fine.shape[-1]]
