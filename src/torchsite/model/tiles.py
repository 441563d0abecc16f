"""Pictures larger than a model takes: explained tile by tile, with nothing lost.

    e(u)    = 1/T Σ_t e_t(u)        the evidence of all tiles, each at its place; 0 outside of a tile
    logit_i = Σ_u e_i(u) = 1/T Σ_t logit_i(tile t)

Evidence is a sum, so tiles add up: the map of the whole picture sums to its logits exactly, and these are the
mean of its tiles' logits. Tiles overlap, so that what lies on the border of one is inside another; the last
ones touch the edges.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from torchsite.errors import ConfigError, ShapeError
from torchsite.model.explanation import EvidenceSums
from torchsite.model.site import SITE
from torchsite.shapes import ClassHeatmaps, Heatmaps, Images, Labels


@dataclass(frozen=True, eq=False)
class TiledExplanation(EvidenceSums):
    """One large picture with its evidence for every class, pixel by pixel, and where its tiles begin."""

    images: Images
    evidence: ClassHeatmaps
    places: tuple[tuple[int, int], ...]
    classes: tuple[str, ...]
    multi_label: bool = False

    def heatmaps(self, *, classes: Labels) -> Heatmaps:
        """The evidence for one class."""
        return self.evidence[torch.arange(len(classes)), classes]

    def contrast(self, a: int, b: int) -> Heatmaps:
        """The evidence for class `a` rather than `b`; its sum is logit_a - logit_b."""
        return self.evidence[:, a] - self.evidence[:, b]


@torch.no_grad()
def explain_tiled(
    model: SITE, picture: Images, *, overlap: float = 0.5, batch_size: int = 32, relative: bool | None = None
) -> TiledExplanation:
    """Explain one picture (1, channels, height, width) that is at least as large as the model's own."""
    channels, height, width = model.config.image_shape
    if picture.ndim != 4 or len(picture) != 1 or picture.shape[1] != channels:
        raise ShapeError(
            f"expected one picture (1, {channels}, height, width), got {tuple(picture.shape)}: pass one"
        )
    rows, cols = picture.shape[-2:]
    if rows < height or cols < width:
        raise ShapeError(
            f"expected a picture of at least {height}×{width}, got {rows}×{cols}: enlarge it, or `explain` it"
        )
    if not 0 <= overlap < 1:
        raise ConfigError(f"overlap: expected a share of the tile in [0, 1), got {overlap}")
    tops, lefts = (starts(n, side, overlap) for n, side in ((rows, height), (cols, width)))
    places = tuple((top, left) for top in tops for left in lefts)
    total = torch.zeros(1, model.config.n_classes, rows, cols, dtype=torch.float64)
    for begin in range(0, len(places), batch_size):
        some = places[begin : begin + batch_size]
        tiles = torch.cat([_at(picture, place, (height, width)) for place in some])
        maps = model.explain(tiles, relative).heatmaps().double().cpu()
        for place, tile in zip(some, maps, strict=True):
            _at(total, place, (height, width)).add_(tile)
    evidence = (total / len(places)).to(picture.dtype)
    return TiledExplanation(picture, evidence, places, model.classes, model.config.multi_label)


def starts(n: int, side: int, overlap: float) -> list[int]:
    """Where tiles of a side begin along `n` pixels: evenly, from the first to the last, none apart."""
    step = max(1, round(side * (1 - overlap)))
    count = 1 + -(-(n - side) // step)
    return [round(i * (n - side) / max(1, count - 1)) for i in range(count)]


def _at(picture: Tensor, place: tuple[int, int], size: tuple[int, int]) -> Tensor:
    (top, left), (height, width) = place, size
    return picture[..., top : top + height, left : left + width]
