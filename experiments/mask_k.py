"""Mask-k: blank the least important pixels, transform, classify; all methods (the paper's Figure 5).

Claim:    the paper's: accuracy and log-odds drop later when SITE's own explanation says which pixels matter
          than when any post-hoc method says so. Ours do not bear it out on CIFAR-10: Score-CAM on the black
          box is ahead (docs/results.md). A random ranking is the floor.
Command:  torchsite reproduce cifar10_mask_k   (or mnist_mask_k)
Cost:     the first 500 test pictures, eleven fractions, two fillings, one pose; slow methods on fewer
          (`STUDY`), and each is compared with a random ranking of its own pictures. CIFAR-10 with the
          pyramid: about 15 minutes of one core. With --quick, a dozen digits.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.measuring import Asked
from experiments.models import Pair
from experiments.study import Arrays, Found, OnPair, Run, Study, kept
from experiments.tables import OWN, Cell, Place, Row, Table, lines_of, notes_on, on_model, row_name
from torchsite.attribution import METHODS
from torchsite.data import to_float
from torchsite.metrics import Poses
from torchsite.metrics.ranking import blanked, least_important_first
from torchsite.report.format import look_up, method_name
from torchsite.results import Result

BLANKED = (0.06, 0.18, 0.67)  # the paper's 1k, 3k and 11k of 16.4k pixels
FILLS = ("black", "blur")
PANELS = {"accuracy": "accuracy", "log_odds": "log-odds of the true class"}
NAMES = {"accuracy": "accuracy", "log_odds": "log-odds"}


def masked_pictures(pair: Pair) -> dict[str, torch.Tensor]:
    """The first picture with few, some, most pixels blanked by SITE's own explanation; the same moved."""
    indices = torch.zeros(1, dtype=torch.int64)
    image = to_float(pair.test.images[:1])
    explanation = pair.site.explain(image)
    order = least_important_first(explanation.heatmaps(classes=explanation.predicted), indices, 0)
    counts = [round(fraction * order.shape[1]) for fraction in BLANKED]
    masked = torch.cat([blanked(image, order, n, torch.zeros_like(image)) for n in counts])
    pose = Poses(pair.site.config.family, n=1).of(indices.expand(len(counts)), 0)
    return {"masked": masked, "moved": pose(masked)}


def draw(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """Accuracy and log-odds against the share of pixels blanked, for all methods and both models."""
    lines = [line for line in lines_of(result) if "fills" in line]
    panes = [(kind, fill) for kind in dict.fromkeys(line["model"] for line in lines) for fill in FILLS]
    widths = (3, 3, 1) if arrays else (3, 3)
    figure = Figure(figsize=(1.65 * sum(widths), 3.9 * len(panes)), layout="constrained")
    grid = figure.subplots(len(panes), len(widths), squeeze=False, width_ratios=widths)
    for panels, (kind, fill) in zip(grid, panes, strict=True):
        rows = [line for line in lines if line["model"] == kind]
        for axes, (measure, label) in zip(panels, PANELS.items(), strict=False):
            _curves(axes, rows, ("fills", fill, measure))
            axes.set_ylabel(label)
            axes.set_title(f"{on_model(kind)}, blanked pixels: {fill}", fontsize=9)
        for axes in panels[len(PANELS) :]:
            axes.set_axis_off()
    if arrays:
        _masked_pictures(grid[0][-1], arrays)
    return {result.name: figure}


def _area(line: Row, path: Sequence[str]) -> float:
    return look_up(line, *path, "area", "value") or 0.0


def _curves(axes: Axes, lines: Sequence[Row], path: Sequence[str]) -> None:
    """One curve per method, its area in the legend, the largest first; random rankings dashed."""
    colours = cycle(colormaps["tab20"].colors)  # type: ignore[attr-defined]  # a list of colours
    for line in sorted(lines, key=lambda line: -_area(line, path)):
        own, other = line["method"] == OWN[0], line["method"] in OWN[1:]
        colour = "black" if own or other else next(colours)
        axes.plot(
            line["fractions"],
            _heights(look_up(line, *path, "curve")),
            ":" if other else "-",
            color=colour,
            lw=2.4 if own else 1.1,
            label=f"{method_name(line['method'])}  {_area(line, path):.3f}",
        )
    most = max(lines, key=lambda line: line["n_images"])
    at_random = look_up(most, *path)
    label = f"random ranking  {at_random['random_area']['value']:.3f}"
    axes.plot(most["fractions"], _heights(at_random["random_curve"]), color="0.5", ls="--", label=label)
    axes.set_xlabel("share of pixels blanked")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=5.5, frameon=False)


def _heights(curve: Sequence[Mapping[str, Any]]) -> list[float]:
    return [math.nan if point["value"] is None else point["value"] for point in curve]


def _masked_pictures(axes: Axes, arrays: Arrays) -> None:
    """Few, some and most pixels blanked: the picture to the left, the same moved to the right."""
    pairs = zip(arrays["masked"], arrays["moved"], strict=True)
    sheet = np.concatenate([np.concatenate([*map(np.asarray, pair)], axis=2) for pair in pairs], axis=1)
    pixels = sheet[0] if len(sheet) == 1 else sheet.transpose(1, 2, 0)
    axes.imshow(pixels.clip(0, 1), cmap="gray", vmin=0, vmax=1)
    axes.set_title("blanked, moved", fontsize=9)


def table_of(fill: str) -> Table:
    """The areas under the curves of one filling, and what they gain over a random ranking."""
    columns: dict[str, Place | Cell] = {}
    for measure, name in NAMES.items():
        columns[f"{name}, area"] = ("fills", fill, measure, "area")
        columns[f"{name}, over random"] = ("fills", fill, measure, "gain")

    columns["pictures"] = lambda line: f"{line['n_images']:,}"

    def largest(lines: Sequence[Row]) -> str:
        best = {
            name: row_name(max(lines, key=lambda line: _area(line, ("fills", fill, measure))))
            for measure, name in NAMES.items()
        }
        said = ", ".join(f"{name}: {who}" for name, who in best.items())
        return f"Blanked pixels: {fill}. The largest areas: {said}.\n\n"

    return Table(columns, largest, digits=4, interval=True)


WORDS = """The least important pixels are blanked, then the picture is moved and classified; areas are mean \
heights of the curves over the share of pixels blanked, beside the gain over a random ranking of the same \
pictures. What blanked pixels show decides which method comes first.\n
"""


def gather(rows: Sequence[Row], subjects: OnPair, run: Run) -> Found:
    """All curves, and the first picture with pixels blanked."""
    return Found({"table": kept(rows, lambda row: row["values"])}, masked_pictures(subjects.pair))


STUDY = Study(
    "{}_mask_k",
    "## {}: mask-k, all methods (Figure 5)",
    [table_of(fill) for fill in FILLS],
    {"mask_k": Asked(500, passes=10_000)},
    methods=tuple(METHODS),
    gather=gather,
    words=lambda result: WORDS,
    notes=notes_on,
    draw=draw,
    chart="Accuracy and log-odds against the share of pixels blanked, all methods",
)
