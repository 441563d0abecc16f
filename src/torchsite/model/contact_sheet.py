"""Many small pictures in one drawing, quickly: a hundred axes of matplotlib take seconds, one takes none."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from torch import Tensor

from torchsite.model.drawing import COLOURS, new_figure

Raster = np.ndarray[Any, np.dtype[np.float32]]
GAP = 0.12  # between columns, as a share of a tile
CAPTION = 0.28  # above each tile


def picture_tile(image: Tensor) -> Raster:
    """A grey or colour picture of values in [0, 1], as height × width × 3."""
    pixels = np.asarray(image.detach().cpu().float().clamp(0, 1)).transpose(1, 2, 0)
    return np.ascontiguousarray(np.broadcast_to(pixels[..., :3], (*pixels.shape[:2], 3)), np.float32)


def heatmap_tile(heatmap: Tensor, limit: float | None = None) -> Raster:
    """A signed map in colour: red speaks for, blue against, white is nothing."""
    values = np.asarray(heatmap.detach().cpu().float())
    bound = limit or float(np.abs(values).max()) or 1.0
    return colormaps[COLOURS]((values / bound + 1) / 2)[..., :3].astype(np.float32)


def draw_tiles(rows: Sequence[Sequence[tuple[Raster, str]]], title: str = "", tile: float = 1.0) -> Figure:
    """Tiles in rows, each with its caption above; `tile` is the width of one in inches."""
    height, width = rows[0][0][0].shape[:2]
    down, across = 1 + CAPTION, 1 + GAP
    n_cols = max(map(len, rows))
    figure, grid = new_figure(1, 1, 1.0, title)
    figure.set_size_inches(
        n_cols * across * tile, len(rows) * down * tile * height / width + (0.3 if title else 0)
    )
    axes = grid[0][0]
    for i, row in enumerate(rows):
        for j, (raster, caption) in enumerate(row):
            top = i * down + CAPTION
            axes.imshow(
                raster, extent=(j * across, j * across + 1, top + 1, top), interpolation="none", aspect="auto"
            )
            axes.text(j * across + 0.5, top - 0.05, caption, ha="center", va="bottom", fontsize=7 * tile**0.5)
    axes.set_xlim(-GAP / 2, n_cols * across - GAP / 2)
    axes.set_ylim(len(rows) * down + 0.05, 0)
    return figure
