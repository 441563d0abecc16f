"""Pictures and models of which the right map is known: bright bars over dark, tinted scenes.

    evidence of object c at u = s · bright(u) · match_c(u),      logit_c = Σ_u of it
    evidence of "nothing"     = half a bar's, everywhere alike: less than half a bar is no object
    evidence of scene k at u  = s · dark_k(u) / pixels,          logit_k = Σ_u of it

Both models are sums of local terms, at any size, so the evidence (relative to all classes) is what hiding a
part does. The bar's colour is the object's class, the tint of the noise behind it is the scene's.
"""

from itertools import product
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.bam.dataset import BamDataset
from torchsite.randomness import make_rng
from torchsite.shapes import ClassHeatmaps, Heatmaps, Images, Labels, Logits

# Full channels of red, green and blue, neither none nor all.
COLOURS = tuple(c for c in product((0.0, 1.0), repeat=3) if 0 < sum(c) < 3)
NAMES = ("blue", "green", "cyan", "red", "magenta", "yellow", "nothing")
TINTS = ("red", "green", "blue")
DARK, BRIGHT = 0.6, 0.75  # scenes stay below the one, bars are above the other
TINT = 0.2
BAR = (12, 6)


class OfParts(nn.Module):
    """A classifier whose logits are sums of local evidence."""

    def evidence(self, images: Images) -> ClassHeatmaps:
        """What each place says for each class."""
        raise NotImplementedError

    def forward(self, images: Images) -> Logits:
        """The sums of the evidence."""
        return self.evidence(images).sum((-2, -1))


class ColouredObjects(OfParts):
    """Names the bar by its colour, and what shows less than half a bar "nothing"."""

    def __init__(self, strength: float = 0.15) -> None:
        super().__init__()
        self.colours = nn.Parameter(torch.tensor(COLOURS))
        self.strength = strength

    def evidence(self, images: Images) -> ClassHeatmaps:
        """Bright places, by how near their colour is to that of the class."""
        bright = (images.amax(1) - BRIGHT).clamp_min(0) / (1 - BRIGHT)
        apart = (images[:, None] - self.colours[None, :, :, None, None]).abs().mean(2)
        nothing = torch.full_like(bright, BAR[0] * BAR[1] / 2 / bright[0].numel())[:, None]
        return self.strength * torch.cat([bright[:, None] * (1 - 2 * apart), nothing], dim=1)


class TintedScenes(OfParts):
    """Names the scene by the channel that is lightest where it is dark."""

    def __init__(self, strength: float = 60.0) -> None:
        super().__init__()
        self.tints = nn.Parameter(torch.eye(len(TINTS)))
        self.strength = strength

    def evidence(self, images: Images) -> ClassHeatmaps:
        """The channels of dark places."""
        is_dark = (images.amax(1, keepdim=True) <= BRIGHT).to(images)
        dark = torch.einsum("kc,nchw->nkhw", self.tints, images.clamp_max(DARK) * is_dark)
        return self.strength * dark / dark[0, 0].numel()


def true_map(model: OfParts, images: Images, classes: Labels) -> Heatmaps:
    """The evidence of each picture's class, relative to all classes: what hiding a place takes away."""
    with torch.no_grad():
        evidence = model.evidence(images)
    relative = evidence - evidence.mean(1, keepdim=True)
    return relative[torch.arange(len(images)), classes]


class Planted(NamedTuple):
    """The pictures and both models."""

    pictures: BamDataset
    objects: ColouredObjects
    scenes: TintedScenes


def planted(n: int, *, side: int = 32, seed: int = 0) -> Planted:
    """Pictures whose classes take turns, each bar at a random place, upright or lying."""
    rng = make_rng(seed, "planted")
    objects, tints = torch.arange(n) % len(COLOURS), torch.arange(n) // len(COLOURS) % len(TINTS)
    coarse = 0.05 + 0.3 * torch.rand(n, 1, side // 4, side // 4, generator=rng)
    noise = F.interpolate(coarse, (side, side), mode="bilinear").expand(n, 3, side, side)
    scenes = noise + TINT * torch.eye(3)[tints][:, :, None, None]
    regions = torch.zeros(n, side, side, dtype=torch.bool)
    for i in range(n):
        height, width = BAR if bool(torch.rand(1, generator=rng) < 0.5) else BAR[::-1]
        top, left = (int(torch.randint(1, side - s, (1,), generator=rng)) for s in (height, width))
        regions[i, top : top + height, left : left + width] = True
    bars = torch.tensor(COLOURS)[objects][:, :, None, None]
    images = torch.where(regions[:, None], bars, scenes)
    pixels, bare = (_pixels(shown) for shown in (images, scenes))
    rows = torch.arange(n)
    made = BamDataset(pixels, objects, tints, regions, rows, bare, NAMES, TINTS, "planted", "test")
    return Planted(made, ColouredObjects(), TintedScenes())


def _pixels(images: Tensor) -> Tensor:
    return (255 * images).round().to(torch.uint8)
