"""One table of many measures: a row for each explainer on each model, a column for each score.

What the sections on true maps share: where each column's score stands in a result file, the order of the rows
(SITE's own first, those that know nothing last), a figure of some columns, and the notes below.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.section import Row, on_model, own_first
from experiments.study import IGNORANT_MARK
from torchsite.attribution import METHODS
from torchsite.metrics import CONTROL_MAPS
from torchsite.report.format import estimate, look_up, markdown_table, method_name

# What each column is called, the measure in its row of the file, and where its score stands.
Columns = Mapping[str, tuple[str, tuple[str, ...]]]
Scores = dict[tuple[str, str], dict[str, Any]]


def scores_of(table: Sequence[Row], columns: Columns) -> Scores:
    """The columns of each method on each model; SITE's own first, those that know nothing last."""
    lines: list[Row] = own_first(table)
    lines.sort(key=lambda row: (row["model"] != "site", row["method"].startswith(IGNORANT_MARK)))
    found: Scores = {}
    for row in lines:
        line = found.setdefault((row["model"], row["method"]), {})
        for name, (metric, path) in columns.items():
            if metric == row["metric"] and row["values"] is not None:
                line[name] = look_up(row["values"], *path)
    return found


def table_of(scores: Scores, columns: Columns) -> str:
    """The table in Markdown: three digits, no intervals."""
    rows = [
        [
            explainer_name(method),
            on_model(kind),
            *(estimate(found.get(c), 3, interval=False) for c in columns),
        ]
        for (kind, method), found in scores.items()
        if any(found.get(column) is not None for column in columns)
    ]
    return markdown_table(["explainer", "", *columns], rows)


def drawn(scores: Scores, shown: Sequence[str]) -> Figure:
    """Some of the columns, by explainer, on both models: points with their intervals."""
    kinds = list(dict.fromkeys(kind for kind, _ in scores))
    methods = list(dict.fromkeys(method for _, method in scores))
    figure = Figure(figsize=(3 * len(shown) + 1.5, 0.26 * len(methods) + 1.4), layout="constrained")
    grid = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for axes, column in zip(grid, shown, strict=True):
        for shift, kind in enumerate(kinds):
            for place, method in enumerate(methods):
                _point(axes, scores.get((kind, method), {}), column, place + 0.3 * shift - 0.15, f"C{shift}")
        axes.set_title(column, fontsize=9)
        axes.grid(axis="x", alpha=0.3)
    grid[0].set_yticks(range(len(methods)), [explainer_name(method) for method in methods], fontsize=8)
    grid[0].set_ylim(len(methods) - 0.5, -0.5)
    marks = [Line2D([], [], marker="o", ls="", color=f"C{k}", label=on_model(n)) for k, n in enumerate(kinds)]
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks))
    return figure


def notes_below(table: Sequence[Row]) -> str:
    """How many pictures each measure saw, what does not apply, and what was left out."""
    seen: dict[str, list[int]] = {}
    for row in table:
        seen.setdefault(row["metric"], []).append(row["n_images"])
    counts = [
        f"{metric} {max(n):,}" + (f" (slow methods {min(n):,})" if min(n) < max(n) else "")
        for metric, n in seen.items()
    ]
    first = {
        f"{explainer_name(row['method'])} {on_model(row['model'])}": row["reason"]
        for row in reversed(table)
        if "reason" in row
    }  # one of each is enough
    reasons = [f"- {name}: {reason}" for name, reason in reversed(first.items())]
    measured = {row["method"] for row in table}
    left = [
        explainer_name(name)
        for name in (*METHODS, *(IGNORANT_MARK + maker for maker in CONTROL_MAPS))
        if name not in measured
    ]
    missing = ["", f"Not measured yet: {', '.join(left)}."] if left else []
    return "\n".join(["\nPictures: " + ", ".join(counts) + ".", *reasons, *missing]) + "\n"


def explainer_name(method: str) -> str:
    """A method as tables call it; map-makers that know nothing are called so."""
    known = method.removeprefix(IGNORANT_MARK)
    return method_name(method) if known == method else f"knows nothing: {known.replace('_', ' ')}"


def _point(axes: Axes, scores: Mapping[str, Any], column: str, height: float, colour: str) -> None:
    score = scores.get(column)
    if score is None or score["value"] is None:
        return
    value, low, high = (score[key] for key in ("value", "low", "high"))
    reach = None if low is None or high is None else [[max(value - low, 0)], [max(high - value, 0)]]
    axes.errorbar([value], [height], xerr=reach, fmt="o", ms=3.5, color=colour)
