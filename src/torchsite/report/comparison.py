"""A comparison as a table for the terminal, Markdown and CSV, and as a figure.

Everything is drawn from a `Comparison`, which is read from its result file: what is shown can be traced.
"""

import math
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from torchsite.evaluation.comparison import MODEL, Cell, Comparison
from torchsite.files import csv_table, write_atomically
from torchsite.metrics import METRICS
from torchsite.model.drawing import PlainFigure
from torchsite.report.charts import show_points
from torchsite.report.format import (
    bounds,
    estimate,
    look_up,
    markdown_table,
    method_name,
    score_name,
    score_paths,
    words,
)
from torchsite.transforms import TransformFamily

PANELS_ACROSS = 4

Steps = tuple[str, ...]


def scores_of(comparison: Comparison, metric: str) -> list[Steps]:
    """The paths of the scores of a measure, as far as its cells have them."""
    values: list[Any] = [cell.values for cell in comparison.cells if cell.metric == metric and cell.values]
    patterns = METRICS[metric].headline
    found = [path for pattern in patterns for one in values or [None] for path in score_paths(one, pattern)]
    return list(dict.fromkeys(found))


def to_lines(comparison: Comparison, metric: str, *, intervals: bool) -> list[list[str]]:
    """For each score of a measure its name, and what each method got."""
    cells = [comparison.cell(method, metric) for method in comparison.methods]
    return [
        [f"{words(metric)}: {score_name(score)}", *(_shown(cell, score, intervals) for cell in cells)]
        for score in scores_of(comparison, metric)
    ]


def to_rich(comparison: Comparison) -> Table:
    """A table for the terminal, one column per method; intervals are in the files, reasons below."""
    table = Table(
        title=title(comparison), caption="\n".join(notes(comparison)) or None, caption_justify="left"
    )
    table.add_column("", no_wrap=True)
    for method in comparison.methods:
        table.add_column(_row_name(method), justify="right", overflow="fold")
    for metric in comparison.metrics:
        table.add_section()
        for line in to_lines(comparison, metric, intervals=False):
            table.add_row(*line)
    table.add_section()
    table.add_row(*_costs(comparison))
    return table


def to_markdown(comparison: Comparison) -> str:
    """A Markdown table with 95 % intervals, its settings above and its notes below."""
    lines = [line for metric in comparison.metrics for line in to_lines(comparison, metric, intervals=True)]
    table = markdown_table(["", *map(_row_name, comparison.methods)], [*lines, _costs(comparison)])
    said = [title(comparison), "", table, *(f"- {note}" for note in notes(comparison))]
    return "\n".join(said).rstrip() + "\n"


def to_rows(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """A header and one row per method: every score, then the cost."""
    lines = [line for metric in comparison.metrics for line in to_lines(comparison, metric, intervals=False)]
    names = ["method", *map(_row_name, comparison.methods)]
    header, *rows = map(list, zip(names, *lines, _costs(comparison), strict=True))
    return header, rows


def to_csv(comparison: Comparison) -> str:
    """One line per method and score: value, interval, cost, reason."""
    rows: list[list[Any]] = [["method", "metric", "figure", "value", "low", "high", "ms_per_image", "reason"]]
    for cell in comparison.cells:
        for score in scores_of(comparison, cell.metric):
            value, low, high = bounds(look_up(cell.values, *score))
            cost = comparison.cost(cell.method)
            row = [cell.method, cell.metric, ".".join(score), value, low, high, cost, cell.reason]
            rows.append(row)
    return csv_table(rows)


def draw(comparison: Comparison) -> Figure:
    """One panel per measure: a point with its interval for every method and score.

    Measures of the model alone are one number each and stay in the tables, unless there is nothing else.
    """
    rows = [method for method in comparison.methods if method != MODEL] or comparison.methods
    metrics = [m for m in comparison.metrics if any(_drawable(comparison, row, m) for row in rows)]
    across = min(PANELS_ACROSS, max(len(metrics), 1))
    down = math.ceil(max(len(metrics), 1) / across)
    size = (3.0 * across + 1.2, (0.3 * len(rows) + 1.7) * down)
    figure = PlainFigure(figsize=size, layout="constrained")
    panels = figure.subplots(down, across, sharey=True, squeeze=False).flatten()
    for axis, metric in zip(panels, metrics, strict=False):
        _panel(axis, comparison, rows, metric)
    for axis in panels[len(metrics) :]:
        axis.set_visible(False)
    panels[0].set_yticks(range(len(rows)), [_row_name(name) for name in rows])
    panels[0].set_ylim(max(len(rows), 1) - 0.5, -0.5)
    return figure


def save_report(comparison: Comparison, folder: Path | str) -> list[Path]:
    """Write the table as Markdown, CSV and PNG beside the result file."""
    root = Path(folder)
    figure = draw(comparison)
    return [
        write_atomically(root / "comparison.md", to_markdown(comparison)),
        write_atomically(root / "comparison.csv", to_csv(comparison)),
        write_atomically(root / "comparison.png", lambda path: figure.savefig(path, format="png", dpi=120)),
    ]


def title(comparison: Comparison) -> str:
    """Model, data, number of pictures, poses and seed of the comparison."""
    config = comparison.config
    ranges = TransformFamily.from_mapping(config["family"])
    return (
        f"Explanations of {config['model']} on {config['n_images']:,} pictures of {config['data']}, "
        f"{config['n_transforms']} transforms each ({ranges}), seed {comparison.seed}"
    )


def notes(comparison: Comparison) -> list[str]:
    """The reasons for empty cells."""
    grouped: dict[str, list[str]] = {}
    for cell in comparison.cells:
        if cell.reason:
            grouped.setdefault(cell.reason, []).append(f"{words(cell.metric)} of {_row_name(cell.method)}")
    return [f"{', '.join(cells)}: {reason}" for reason, cells in grouped.items()]


def _costs(comparison: Comparison) -> list[str]:
    costs = [comparison.cost(method) for method in comparison.methods]
    return ["ms a picture", *("" if cost is None else f"{cost:.2f}" for cost in costs)]


def _shown(cell: Cell | None, score: Steps, intervals: bool) -> str:
    if cell is None:
        return ""
    if cell.reason is not None:
        return "n/a"
    return estimate(look_up(cell.values, *score), 3, interval=intervals)


def _drawable(comparison: Comparison, method: str, metric: str) -> bool:
    cell = comparison.cell(method, metric)
    if cell is None:
        return False
    scores = (look_up(cell.values, *score) for score in scores_of(comparison, metric))
    return any(bounds(score)[0] is not None for score in scores)


def _panel(axis: Axes, comparison: Comparison, rows: list[str], metric: str) -> None:
    scores = scores_of(comparison, metric)
    for k, name in enumerate(scores):
        cells = [comparison.cell(method, metric) for method in rows]
        found = [None if cell is None else look_up(cell.values, *name) for cell in cells]
        show_points(axis, found, 0.15 * (k - (len(scores) - 1) / 2), f"C{k}", score_name(name))
    axis.set_title(words(metric))
    axis.grid(axis="x", alpha=0.3)
    axis.legend(fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.08), frameon=False)


def _row_name(method: str) -> str:
    return "(the model)" if method == MODEL else method_name(method)
