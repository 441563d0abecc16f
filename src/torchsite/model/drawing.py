"""Pictures of explanations: normalising happens here, and only here.

Evidence for a class is drawn red, evidence against it blue, on a scale that is symmetric about zero, so
that white means "no evidence" in every panel; red and blue stay apart for colour-blind eyes.
"""

import base64
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from torch import Tensor

if TYPE_CHECKING:
    from torchsite.model.explanation import ClassChoice, Explanation

Raster = np.ndarray[Any, np.dtype[np.float32]]
COLOURS = "RdBu_r"
PROTOTYPES = "above: prototypes\nbelow: evidence"
NEAREST = "above: training\npictures that the\nprototypes fit best"
GAP = 0.12  # between columns of tiles, as a share of a tile
CAPTION = 0.28  # above each tile
RED, BLUE = np.array([214.0, 24.0, 31.0]), np.array([5.0, 80.0, 190.0])


class PlainFigure(Figure):
    """A figure whose texts are drawn as they are: `$` in a name is no formula."""

    def draw(self, renderer: RendererBase) -> None:
        """Draw everything; no text is parsed as mathematics."""
        for text in self.findobj(Text):
            text.set_parse_math(False)
        super().draw(renderer)


def new_figure(rows: int, cols: int, panel: float = 1.0, title: str = "") -> tuple[Figure, list[list[Axes]]]:
    """A figure of square panels without axes; no global state of matplotlib is touched."""
    figure = PlainFigure(figsize=(cols * panel, rows * panel + (0.35 if title else 0)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, cols, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    if title:
        figure.suptitle(title, fontsize=9)
    return figure, [list(row) for row in grid]


def show_picture(axes: Axes, image: Tensor, title: str = "") -> None:
    """A grey or colour picture of values in [0, 1]."""
    axes.imshow(picture_tile(image), interpolation="none")
    axes.set_title(title, fontsize=7, pad=2)


def show_heatmap(axes: Axes, heatmap: Tensor, title: str = "", limit: float | None = None) -> None:
    """A signed map; `limit` makes panels comparable."""
    values = np.asarray(heatmap.detach().cpu().float())
    bound = limit or float(np.abs(values).max()) or 1.0
    axes.imshow(values, cmap=COLOURS, vmin=-bound, vmax=bound, interpolation="none")
    axes.set_title(title, fontsize=7, pad=2)


def overlay(image: np.ndarray, heatmap: np.ndarray, strength: float = 0.75) -> np.ndarray:
    """A picture with a signed map over it, both height × width: red is for the class, blue against it.

    The picture is drawn in grey, so that its own colours are not taken for evidence.
    """
    bound = float(np.abs(heatmap).max()) or 1.0
    ground = np.repeat(image.astype(np.float64).mean(-1, keepdims=True), 3, -1)
    colour = np.where((heatmap > 0)[..., None], RED, BLUE)
    alpha = strength * (np.abs(heatmap) / bound)[..., None]
    return ((1 - alpha) * ground + alpha * colour).round().clip(0, 255).astype(np.uint8)


def draw_explanation(
    explanation: "Explanation",
    index: int | Sequence[int] = 0,
    n_classes: int = 5,
    first: "ClassChoice | None" = None,
    panel: float = 1.15,
) -> Figure:
    """Pictures and their strongest classes: prototype above, evidence below, its sum as the title.

    `first` is a class that is shown before the others, however weak. Prototypes of learned features are shown
    by the training pictures that they fit best; without a gallery there is the evidence alone.
    """
    chosen = [index] if isinstance(index, int) else index
    n_shown = min(n_classes, len(explanation.classes))
    n_rows = 2 if explanation.pixels_are_features or explanation.gallery is not None else 1
    figure, grid = new_figure(n_rows * len(chosen), n_shown + 1, panel)
    for number, i in enumerate(chosen):
        order = explanation.logits[i].argsort(descending=True).tolist()
        if first is not None:
            label = int(explanation.class_index(first)[i])
            order = [label, *(other for other in order if other != label)]
        _draw_classes(grid[n_rows * number : n_rows * (number + 1)], explanation, i, order[:n_shown])
    return figure


def _draw_classes(grid: list[list[Axes]], explanation: "Explanation", i: int, order: list[int]) -> None:
    """One picture, then these classes."""
    pictures, names = explanation.prototype_pictures(i), explanation.classes
    heatmaps = explanation.heatmaps()[i]
    limit = float(heatmaps[order].abs().max())
    show_picture(grid[0][0], explanation.images[i], f"seen as {names[int(explanation.predicted[i])]}")
    for column, label in enumerate(order, start=1):
        total = f"Σ = {float(explanation.logits[i, label]):.2f}"
        if pictures is not None:
            show_picture(grid[0][column], pictures[label], names[label])
        words = total if pictures is not None else f"{names[label]}: {total}"
        show_heatmap(grid[-1][column], heatmaps[label], words, limit)
    if pictures is not None:
        text = PROTOTYPES if explanation.pixels_are_features else NEAREST
        grid[1][0].text(0.5, 0.5, text, ha="center", va="center", fontsize=6)


def draw_why(explanation: "Explanation", a: "ClassChoice", b: "ClassChoice", index: int = 0) -> Figure:
    """One picture, the evidence for two classes, and why the one rather than the other."""
    names = explanation.classes
    first, second = (int(explanation.class_index(choice)[index]) for choice in (a, b))
    maps = explanation.heatmaps()[index]
    limit = float(maps[[first, second]].abs().max())
    why = explanation.contrast(first, second)[index]
    figure, grid = new_figure(1, 4, 1.5)
    show_picture(grid[0][0], explanation.images[index], f"seen as {names[int(explanation.predicted[index])]}")
    for axes, label in zip(grid[0][1:3], (first, second), strict=True):
        show_heatmap(axes, maps[label], f"{names[label]}: Σ = {float(maps[label].sum()):.2f}", limit)
    show_heatmap(grid[0][3], why, f"{names[first]}, not {names[second]}: Σ = {float(why.sum()):.2f}", limit)
    return figure


def picture_tile(image: Tensor) -> Raster:
    """A picture of values in [0, 1] as height × width × 3; of two channels as red and green."""
    pixels = np.asarray(image.detach().cpu().float().clamp(0, 1)).transpose(1, 2, 0)
    if pixels.shape[-1] == 2:
        pixels = np.concatenate([pixels, np.zeros_like(pixels[..., :1])], -1)
    return np.ascontiguousarray(np.broadcast_to(pixels[..., :3], (*pixels.shape[:2], 3)), np.float32)


def heatmap_tile(heatmap: Tensor, limit: float | None = None) -> Raster:
    """A signed map in colour: red is for, blue against, white is zero."""
    values = np.asarray(heatmap.detach().cpu().float())
    bound = limit or float(np.abs(values).max()) or 1.0
    return colormaps[COLOURS]((values / bound + 1) / 2)[..., :3].astype(np.float32)


def draw_tiles(rows: Sequence[Sequence[tuple[Raster, str]]], title: str = "", tile: float = 1.0) -> Figure:
    """Tiles in rows, each with its caption above; `tile` is the width of one in inches.

    All of them share one axes: a hundred axes of matplotlib take seconds.
    """
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


def png(figure: Figure, dpi: int = 150) -> bytes:
    """The figure as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def data_uri(figure: Figure, dpi: int = 110) -> str:
    """The figure as an image that an HTML page can carry in itself."""
    return f"data:image/png;base64,{base64.b64encode(png(figure, dpi)).decode()}"


def explanation_html(explanation: "Explanation", n_pictures: int = 3) -> str:
    """What a notebook shows: the first few pictures with their reasons."""
    shown = range(min(n_pictures, len(explanation)))
    images = [
        f'<img alt="explanation {i}" src="{data_uri(draw_explanation(explanation, i))}">' for i in shown
    ]
    return "<br>".join(images)
