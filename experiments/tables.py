"""One builder of tables and one plotter: a line for each explainer on each model, a column for each score.

A row of a result file is a measure of an explainer on a model: `model`, `method`, `metric`, `values`, how
many pictures, and what it cost or why there is nothing. `lines_of` gathers the rows of an explainer into a
line that holds the values of each measure by the measure's name. A column is where its score stands in a
line, or a function that writes its cell.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from torchsite.attribution import METHODS
from torchsite.metrics import CONTROL_MAPS
from torchsite.report.format import bounds, estimate, look_up, markdown_table, method_name
from torchsite.results import Result

Row = dict[str, Any]
Place = tuple[str, ...]
Cell = Callable[[Row], str]
Columns = Mapping[str, Place | Cell]

IGNORANT_MARK = "ignorant_"
IGNORANT = tuple(IGNORANT_MARK + name for name in CONTROL_MAPS)
MODELS = {"site": "SITE", "black_box": "the black box"}
CONSISTENCY = ("raw", "floor", "calibrated", "centred")
# The model's own explanations, in the order in which tables show them.
OWN = ("self_explanation", "relative_explanation", "plain_explanation")


def explainer_name(method: str) -> str:
    """A method as tables call it; map-makers that know nothing are called so."""
    known = method.removeprefix(IGNORANT_MARK)
    return method_name(method) if known == method else f"knows nothing: {known.replace('_', ' ')}"


def on_model(kind: str) -> str:
    """Which of the two models was explained."""
    return f"on {MODELS[kind]}"


def row_name(row: Row) -> str:
    """What a row of a table is about: a method on a model."""
    return f"{explainer_name(row['method'])} {on_model(row['model'])}"


def own_first(rows: Iterable[Row]) -> list[Row]:
    """The model's own explanations, then the others in their order, those that know nothing last."""
    known = sorted(rows, key=lambda row: OWN.index(row["method"]) if row["method"] in OWN else len(OWN))
    return sorted(known, key=lambda row: (row["model"] != "site", row["method"].startswith(IGNORANT_MARK)))


def lines_of(result: Result) -> list[Row]:
    """One line for each explainer on each model, in the order of `own_first`; each knows its `recipe`."""
    lines: dict[tuple[str, str], Row] = {}
    for row in own_first(result.values.get("table", ())):
        known = {**row, "recipe": result.config.get("recipe", "")}
        line = lines.setdefault((row["model"], row["method"]), known)
        if row.get("values") is not None:
            line[row["metric"]] = row["values"]
    return list(lines.values())


NAMES: Mapping[str, Cell] = {
    "explainer": lambda row: explainer_name(row["method"]),
    "": lambda row: on_model(row["model"]),
}


@dataclass(frozen=True)
class Table:
    """The columns of a table, the words above it, how its scores are written, and which lines it shows.

    Without `shown` those are the lines that have any of the scores. A table that is not about explainers has
    its lines from elsewhere in the result (`of`), and other `names` for its first columns.
    """

    columns: Columns
    words: Callable[[Sequence[Row]], str] = lambda _: ""
    digits: int = 3
    interval: bool = False
    shown: Callable[[Row], bool] | None = None
    of: Callable[[Result], Sequence[Row]] = lines_of
    names: Mapping[str, Cell] = field(default_factory=lambda: NAMES)

    def text(self, result: Result) -> str:
        """The words and the table in Markdown."""
        lines = self.of(result)
        cells = {**self.names, **{name: self._cell(column) for name, column in self.columns.items()}}
        shown = self.shown or (self._scored if self.names is NAMES else lambda line: True)
        rows = [[cell(line) for cell in cells.values()] for line in lines if shown(line)]
        return self.words(lines) + markdown_table([*cells], rows)

    def drawn(self, lines: Sequence[Row], shown: Sequence[str]) -> Figure:
        """Some of the columns, by explainer, on both models: points with their intervals."""
        kinds = list(dict.fromkeys(line["model"] for line in lines))
        methods = list(dict.fromkeys(line["method"] for line in lines))
        size = (3 * len(shown) + 1.5, 0.26 * len(methods) + 1.4)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
        for axes, column in zip(grid, shown, strict=True):
            path = self.columns[column]
            assert isinstance(path, tuple), "what is drawn is a score"
            for shift, kind in enumerate(kinds):
                for line in (line for line in lines if line["model"] == kind):
                    height = methods.index(line["method"]) + 0.3 * shift - 0.15
                    draw_estimate(axes, look_up(line, *path), height, f"C{shift}")
            axes.set_title(column, fontsize=9)
            axes.grid(axis="x", alpha=0.3)
        grid[0].set_yticks(range(len(methods)), [explainer_name(method) for method in methods], fontsize=8)
        grid[0].set_ylim(len(methods) - 0.5, -0.5)
        marks = [
            Line2D([], [], marker="o", ls="", color=f"C{k}", label=on_model(n)) for k, n in enumerate(kinds)
        ]
        figure.legend(handles=marks, loc="outside lower center", ncols=len(marks))
        return figure

    def _scored(self, line: Row) -> bool:
        paths = (column for column in self.columns.values() if isinstance(column, tuple))
        return any(look_up(line, *path) is not None for path in paths)

    def _cell(self, column: Place | Cell) -> Cell:
        if not isinstance(column, tuple):
            return column
        return lambda line: estimate(look_up(line, *column), self.digits, interval=self.interval)


def draw_estimate(axes: Axes, found: Any, height: float, colour: str) -> None:
    """A point with its interval; nothing where there is no value."""
    value, low, high = bounds(found)
    if value is not None:
        reach = None if low is None or high is None else [[max(value - low, 0)], [max(high - value, 0)]]
        axes.errorbar([value], [height], xerr=reach, fmt="o", ms=3.5, color=colour)


def notes_on(result: Result) -> str:
    """What does not apply and why, and which layers and options were not the usual ones."""
    table = result.values["table"]
    refused = [f"- {row_name(row)} is not defined: {row['reason']}" for row in table if "reason" in row]
    chosen = [
        f"- {row_name(row)}: " + ", ".join(f"{key} = {value}" for key, value in row["options"].items())
        for row in table
        if row["options"] and row["method"] not in OWN and "reason" not in row
    ]
    return "\n".join(["", *refused, *chosen]) + "\n" if refused or chosen else ""


def counts(table: Sequence[Row]) -> str:
    """How many pictures each measure saw."""
    seen: dict[str, list[int]] = {}
    for row in table:
        seen.setdefault(row["metric"], []).append(row["n_images"])
    said = [
        f"{metric} {max(n):,}" + (f" (slow methods {min(n):,})" if min(n) < max(n) else "")
        for metric, n in seen.items()
    ]
    return f"Pictures: {', '.join(said)}."


def notes_below(result: Result) -> str:
    """How many pictures each measure saw, what does not apply, and what was left out."""
    table = result.values["table"]
    reasons: dict[str, str] = {}  # one of each is enough
    for row in table:
        if "reason" in row:
            reasons.setdefault(row_name(row), f"- {row_name(row)}: {row['reason']}")
    left = [explainer_name(m) for m in (*METHODS, *IGNORANT) if m not in {row["method"] for row in table}]
    missing = ["", f"Not measured yet: {', '.join(left)}."] if left else []
    return "\n".join([f"\n{counts(table)}", *reasons.values(), *missing]) + "\n"
