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
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.models import Pair
from experiments.registry import Arrays
from experiments.section import (
    OWN,
    Pictures,
    Row,
    Score,
    head,
    notes_on,
    on_model,
    own_first,
    row_name,
)
from experiments.study import Amount, Study, saved, without_values
from torchsite.attribution import METHODS
from torchsite.data import to_float
from torchsite.metrics import Poses
from torchsite.metrics.ranking import background_of, blanked, least_important_first
from torchsite.report.format import markdown_table, method_name, score
from torchsite.results import Result

SHOWN = (0.06, 0.18, 0.67)  # the paper's 1k, 3k and 11k of 16.4k pixels
BLACK = "black"
PANELS = {"accuracy": "accuracy", "log_odds": "log-odds of the true class"}


STUDY = Study("mask_k", {"mask_k": Amount(500, passes=10_000)}, tuple(METHODS))


def run(
    recipe: str,
    folder: Path,
    *,
    methods: Sequence[str] | None = None,
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Mask by every method on both models of the recipe; finished methods are taken from `folder`."""
    result, pair = STUDY.run(recipe, folder, methods=methods, quick=quick, progress=progress)
    table = [_row(without_values(row), row["values"]) for row in result.values["table"]]
    return saved(result, folder, masked_pictures(pair), table=table)


def masked_pictures(pair: Pair) -> dict[str, torch.Tensor]:
    """The first picture with few, some, most pixels blanked by SITE's own explanation; the same moved."""
    indices = torch.zeros(1, dtype=torch.int64)
    image = to_float(pair.test.images[:1])
    explanation = pair.site.explain(image)
    order = least_important_first(explanation.heatmaps(classes=explanation.predicted), indices, 0)
    counts = [round(fraction * order.shape[1]) for fraction in SHOWN]
    masked = torch.cat([blanked(image, order, n, background_of(image, 0.0)) for n in counts])
    pose = Poses(pair.site.config.family, n=1).of(indices.expand(len(counts)), 0)
    return {"masked": masked, "moved": pose(masked)}


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """Accuracy and log-odds against the share of pixels blanked, for all methods and both models."""
    table = _measured_rows(result)
    kinds = list(dict.fromkeys(row["model"] for row in table))
    panes = [(kind, fill) for kind in kinds for fill in _fillings(table)]
    widths = (3, 3, 1) if arrays else (3, 3)
    figure = Figure(figsize=(1.65 * sum(widths), 3.9 * len(panes)), layout="constrained")
    grid = figure.subplots(len(panes), len(widths), squeeze=False, width_ratios=widths)
    for panels, (kind, fill) in zip(grid, panes, strict=True):
        rows = [row for row in table if row["model"] == kind]
        for axes, (measure, label) in zip(panels, PANELS.items(), strict=False):
            _curves(axes, rows, measure, fill)
            axes.set_ylabel(label)
            axes.set_title(f"{on_model(kind)}, blanked pixels: {fill}", fontsize=9)
        for axes in panels[len(PANELS) :]:
            axes.set_axis_off()
    if arrays:
        _masked_pictures(grid[0][-1], arrays)
    return {result.name: figure}


def section(result: Result, pictures: Pictures) -> str:
    """The areas under the curves, and what they gain over a random ranking."""
    table = _measured_rows(result)
    fillings = _fillings(table)
    tables = (
        f"Blanked pixels: {fill}. {_largest(table, fill)}\n\n{_table(table, fill)}" for fill in fillings
    )
    return (
        head(result, "mask-k, all methods (Figure 5)")
        + "The least important pixels are blanked, then the picture is moved and classified; areas are mean "
        "heights of the curves over the share of pixels blanked, beside the gain over a random ranking of "
        "the same pictures. What blanked pixels show decides which method comes first.\n\n"
        + "\n".join(tables)
        + notes_on(result.values["table"])
        + pictures.chart(
            result.name, "Accuracy and log-odds against the share of pixels blanked, all methods"
        )
    )


def _row(row: Row, values: Mapping[str, Any] | None) -> Row:
    return {**row, **(values or {})}


def _measured_rows(result: Result) -> list[Row]:
    table: list[Row] = result.values["table"]
    return [row for row in table if "reason" not in row]


def _fillings(table: Sequence[Row]) -> list[str]:
    """The fillings of blanked pixels that the file has: the first files have black alone, by no name."""
    return list(dict.fromkeys(fill for row in table for fill in row.get("fills", {BLACK: {}})))


def _ranked(row: Row, measure: str, fill: str) -> Mapping[str, Any]:
    """How one measure falls as pixels are blanked, by a method's ranking and by a random one."""
    if "fills" in row:
        return row["fills"][fill][measure]
    return row["accuracy"] if measure == "accuracy" else row["log_odds"]


def _area(row: Row, measure: str, fill: str) -> float:
    return _ranked(row, measure, fill)["area"]["value"] or 0.0


def _table(table: Sequence[Row], fill: str) -> str:
    rows = [
        [
            method_name(row["method"]),
            on_model(row["model"]),
            *(score(_ranked(row, measure, fill), part) for measure in PANELS for part in ("area", "gain")),
            f"{row['n_images']:,}",
        ]
        for row in own_first(table)
    ]
    header = ["ranked by", "", "accuracy, area", "over random", "log-odds, area", "over random", "pictures"]
    return markdown_table(header, rows)


def _heights(curve: Sequence[Score]) -> list[float]:
    return [math.nan if point["value"] is None else point["value"] for point in curve]


def _largest(table: Sequence[Row], fill: str) -> str:
    """Whose curves are highest; areas of methods that saw fewer pictures are of those pictures."""
    best = {
        name: max(table, key=lambda row: _area(row, measure, fill))
        for measure, name in (("accuracy", "accuracy"), ("log_odds", "log-odds"))
    }
    said = (f"{name}: {row_name(row)}" for name, row in best.items())
    return f"The largest areas: {', '.join(said)}."


def _curves(axes: Axes, rows: Sequence[Row], measure: str, fill: str) -> None:
    """One curve per method, its area in the legend, the largest first; random rankings dashed."""
    colours = cycle(colormaps["tab20"].colors)  # type: ignore[attr-defined]  # a list of colours
    for row in sorted(rows, key=lambda row: -_area(row, measure, fill)):
        own, other = row["method"] == OWN[0], row["method"] in OWN[1:]
        heights = _heights(_ranked(row, measure, fill)["curve"])
        label = f"{method_name(row['method'])}  {_area(row, measure, fill):.3f}"
        colour = "black" if own or other else next(colours)
        style = ":" if other else "-"
        axes.plot(row["fractions"], heights, style, color=colour, lw=2.4 if own else 1.1, label=label)
    most = max(rows, key=lambda row: row["n_images"])
    at_random = _ranked(most, measure, fill)
    heights = _heights(at_random["random_curve"])
    label = f"random ranking  {at_random['random_area']['value']:.3f}"
    axes.plot(most["fractions"], heights, color="0.5", ls="--", label=label)
    axes.set_xlabel("share of pixels blanked")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=5.5, frameon=False)


def _masked_pictures(axes: Axes, arrays: Arrays) -> None:
    """Few, some and most pixels blanked: the picture to the left, the same moved to the right."""
    pairs = zip(arrays["masked"], arrays["moved"], strict=True)
    strips = [np.concatenate([np.asarray(part) for part in pair], axis=2) for pair in pairs]
    sheet = np.concatenate(strips, axis=1)
    pixels = sheet[0] if len(sheet) == 1 else sheet.transpose(1, 2, 0)
    axes.imshow(pixels.clip(0, 1), cmap="gray", vmin=0, vmax=1)
    axes.set_title("blanked, moved", fontsize=9)
