"""Curves and points of the paper's experiments: mask-k (Figure 5), and Table 1 as a chart."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from torchsite.paper.names import OWN, method_name, on_model, own_first
from torchsite.results import Result

Lines = Sequence[Mapping[str, Any]]

PANELS = {"accuracy": "accuracy", "log_odds": "log-odds of the true class"}
SCORES = {"raw": "C0", "floor": "0.6", "calibrated": "C1", "centred": "C2"}


def draw_mask_k(result: Result, arrays: Mapping[str, Tensor]) -> Figure:
    """Accuracy and log-odds against the share of pixels blanked, for all methods and both models."""
    table = [line for line in result.values["table"] if "reason" not in line]
    kinds = list(dict.fromkeys(line["model"] for line in table))
    widths = (3, 3, 1) if arrays else (3, 3)
    figure = Figure(figsize=(1.65 * sum(widths), 3.9 * len(kinds)), layout="constrained")
    grid = figure.subplots(len(kinds), len(widths), squeeze=False, width_ratios=widths)
    for row, kind in zip(grid, kinds, strict=True):
        lines = [line for line in table if line["model"] == kind]
        for axes, (measure, label) in zip(row, PANELS.items(), strict=False):
            _curves(axes, lines, measure)
            axes.set_ylabel(label)
            axes.set_title(on_model(kind), fontsize=9)
        for axes in row[len(PANELS) :]:
            axes.set_axis_off()
    if arrays:
        _masked_pictures(grid[0][-1], arrays)
    return figure


def _curves(axes: Axes, lines: Lines, measure: str) -> None:
    """One curve per method, its area in the legend, the largest first; random rankings dashed."""
    ordered = sorted(lines, key=lambda line: -line[measure]["area"]["value"])
    colours = cycle(colormaps["tab20"].colors)  # type: ignore[attr-defined]  # a list of colours
    for line in ordered:
        own, other = line["method"] == OWN[0], line["method"] in OWN[1:]
        heights = [point["value"] for point in line[measure]["curve"]]
        label = f"{method_name(line['method'])}  {line[measure]['area']['value']:.3f}"
        colour = "black" if own or other else next(colours)
        style = ":" if other else "-"
        axes.plot(line["fractions"], heights, style, color=colour, lw=2.4 if own else 1.1, label=label)
    most = max(lines, key=lambda line: line["n_images"])
    at_random = [point["value"] for point in most[measure]["random_curve"]]
    area = most[measure]["random_area"]["value"]
    axes.plot(most["fractions"], at_random, color="0.5", ls="--", label=f"random ranking  {area:.3f}")
    axes.set_xlabel("share of pixels blanked")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=5.5, frameon=False)


def _masked_pictures(axes: Axes, arrays: Mapping[str, Tensor]) -> None:
    """Few, some and most pixels blanked: the picture to the left, the same moved to the right."""
    pairs = zip(arrays["masked"], arrays["moved"], strict=True)
    rows = [np.concatenate([np.asarray(part) for part in pair], axis=2) for pair in pairs]
    sheet = np.concatenate(rows, axis=1)
    pixels = sheet[0] if len(sheet) == 1 else sheet.transpose(1, 2, 0)
    axes.imshow(pixels.clip(0, 1), cmap="gray", vmin=0, vmax=1)
    axes.set_title("blanked, moved", fontsize=9)


def draw_consistency(result: Result) -> Figure:
    """Table 1 as points with intervals: raw, floor, calibrated and centred, by method, on both models."""
    table = [line for line in result.values["table"] if "self_consistency" in line]
    kinds = list(dict.fromkeys(line["model"] for line in table))
    methods = list(dict.fromkeys(line["method"] for line in own_first(table)))
    figure = Figure(figsize=(4.5 * len(kinds) + 1, 0.32 * len(methods) + 1.4), layout="constrained")
    grid = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
    for axes, kind in zip(grid, kinds, strict=True):
        for line in (line for line in table if line["model"] == kind):
            _points(axes, line["self_consistency"], methods.index(line["method"]))
        axes.set_title(on_model(kind), fontsize=9)
        axes.grid(axis="x", alpha=0.3)
    grid[0].set_yticks(range(len(methods)), [method_name(method) for method in methods], fontsize=8)
    grid[0].set_ylim(len(methods) - 0.5, -0.5)
    handles, labels = grid[0].get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once.keys(), loc="outside lower center", ncols=4)
    return figure


def _points(axes: Axes, scores: Mapping[str, Any], row: int) -> None:
    for k, (name, colour) in enumerate(SCORES.items()):
        value, low, high = (scores[name][key] for key in ("value", "low", "high"))
        if value is None:
            continue
        reach = None if low is None else [[max(value - low, 0)], [max(high - value, 0)]]
        height = row + 0.16 * (k - 1.5)
        axes.errorbar([value], [height], xerr=reach, fmt="o", ms=3.5, color=colour, label=name)
