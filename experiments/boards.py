"""Boards: rows with a score for each seed, as tables of mean ± spread, as dots, and in plain words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.tables import IGNORANT_MARK, Row, explainer_name
from torchsite.report.format import NOTHING, bounds, look_up, markdown_table

OWN, POST_HOC, IGNORANT = "itself", "post-hoc", "knows nothing"
COLOURS = {OWN: "C0", POST_HOC: "C1", IGNORANT: "0.6"}

Board = Mapping[str, Any]
Scores = Sequence[float | None]  # one for each seed


@dataclass(frozen=True)
class Column:
    """A score: the measure and where in its values it stands; without a place, what a map costs.

    With `floor` it is how far the score is above that, as a share of the way to 1. `better` is 1 where more
    is better, -1 where less is, 0 where neither is. `of_model` scores are shared by all explainers of a
    model.
    """

    title: str
    metric: str
    path: tuple[str, ...] = ()
    better: int = 1
    of_model: bool = False
    floor: tuple[str, ...] = ()

    def of(self, found: Row | None) -> float | None:
        """The score in the row of its measure; None where there is none."""
        if found is None or found["values"] is None:
            return None
        if not self.path:
            cost: float | None = found["ms_per_image"]
            return cost
        value, floor = (bounds(look_up(found["values"], *path))[0] for path in (self.path, self.floor))
        if value is None or not self.floor:
            return value
        return None if floor is None else (value - floor) / (1 - floor)


def row_of(entry: str, title: str, explainer: str, found: Iterable[Row], columns: Sequence[Column]) -> Row:
    """One explainer of one model: its scores seed by seed, how many pictures, why some are missing."""
    kind = OWN if explainer == OWN else IGNORANT if explainer.startswith(IGNORANT_MARK) else POST_HOC
    name = explainer_name(explainer)
    rows = {(row["seed"], row["metric"]): row for row in found}
    seeds = list(dict.fromkeys(seed for seed, _ in rows))
    return {
        "entry": entry,
        "explainer": explainer,
        "title": {OWN: title, POST_HOC: f"{name} on {title}", IGNORANT: name}[kind],
        "kind": kind,
        "scores": {one.title: [one.of(rows.get((seed, one.metric))) for seed in seeds] for one in columns},
        "n_images": {metric: row["n_images"] for (_, metric), row in rows.items()},
        "reasons": {metric: row["reason"] for (_, metric), row in rows.items() if "reason" in row},
    }


def table_of_rows(board: Board, columns: Sequence[Column]) -> str:
    """Every score of every row, mean ± spread over seeds; the best of those that know something in bold."""
    best = {one.title: leaders(board, one)[0] for one in columns}
    rows = [
        [
            row["title"],
            *(_cell(row["scores"].get(one.title, []), row["title"] in best[one.title]) for one in columns),
        ]
        for row in board["rows"]
    ]
    counts: dict[str, set[int]] = {}
    for row in board["rows"]:
        for metric, n in row["n_images"].items():
            counts.setdefault(metric.replace("_", " "), set()).add(n)
    seen = ", ".join(
        f"{metric} {max(n)}" + (f" (slow methods {min(n)})" if len(n) > 1 else "")
        for metric, n in counts.items()
    )
    reasons = [
        f"- {row['title']}, {metric.replace('_', ' ')}: {why}"
        for row in board["rows"]
        for metric, why in row["reasons"].items()
    ]
    notes = "\n".join([f"\nPictures: {seen}.", *reasons]) + "\n"
    return markdown_table(["explainer", *(one.title for one in columns)], rows) + notes


def first_words(board: Board, columns: Sequence[Column], ours: str = "site") -> str:
    """By which columns our row is first, and who is where it is not; whom a row that knows nothing beats."""
    own = next((row for row in board["rows"] if (row["entry"], row["kind"]) == (ours, OWN)), None)
    first, behind, fooled = [], [], []
    for one in columns:
        (names, best), (_, nothing) = leaders(board, one), leaders(board, one, ignorant=True)
        score = centre(own["scores"].get(one.title, [])) if own else None
        if own and one.better and score is not None and best is not None:
            if own["title"] in names:
                first.append(one.title)
            else:
                behind.append(f"{one.title}: {score:.3g}, {' and '.join(names)} {one.better * best:.3g}")
        if (
            one.better > 0
            and not one.of_model
            and best is not None
            and nothing is not None
            and nothing >= best
        ):
            fooled.append(one.title)
    said, n = [], len(first) + len(behind)
    if own and n:
        which = f" ({'; '.join(first)})." if first else "."
        said.append(f"{own['title']} is first in {len(first)} of {n} columns{which}")
    if behind:
        said.append(f"**It is not first** in these: {'; '.join(behind)}.")
    if fooled:
        said.append(f"A row that knows nothing is ahead of all others in: {'; '.join(fooled)}.")
    return " ".join(said)


def centre(scores: Scores) -> float | None:
    """The mean over seeds; None where there is none."""
    there = [score for score in scores if score is not None]
    return mean(there) if there else None


def leaders(board: Board, column: Column, *, ignorant: bool = False) -> tuple[list[str], float | None]:
    """The rows with the best mean, among those that know something or those that do not, and that mean.

    More is better in it, whatever is in the column; where no way is better nobody leads.
    """
    rows = [row for row in board["rows"] if (row["kind"] == IGNORANT) == ignorant]
    found = {row["title"]: centre(row["scores"].get(column.title, [])) for row in rows}
    means = {title: column.better * value for title, value in found.items() if value is not None}
    best = max(means.values(), default=None)
    return [title for title, value in means.items() if column.better and value == best], best


def dots(boards: Mapping[str, Board], shown: Sequence[str]) -> Figure:
    """Some scores of every row on every data set: a dot for each seed, a bar at their mean."""
    n_rows = max(len(board["rows"]) for board in boards.values())
    size = (2.4 * len(shown) + 2.4, (0.2 * n_rows + 0.9) * len(boards))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(boards), len(shown), squeeze=False, sharex="col")
    for line, board in zip(grid, boards.values(), strict=True):
        for axes, column in zip(line, shown, strict=True):
            _dots(axes, board["rows"], column)
        titles = [row["title"] for row in board["rows"]]
        line[0].set_yticks(range(len(titles)), titles, fontsize=7)
        line[0].set_ylabel(board["title"], fontsize=8)
    for axes, column in zip(grid[0], shown, strict=True):
        axes.set_title(column, fontsize=9)
    return figure


def _dots(axes: Axes, rows: Sequence[Row], column: str) -> None:
    for place, row in enumerate(rows):
        found = [score for score in row["scores"].get(column, []) if score is not None]
        axes.plot(found, [place] * len(found), "o", ms=3, alpha=0.7, color=COLOURS[row["kind"]])
        if found:
            axes.plot([mean(found)], [place], "|", ms=10, color=COLOURS[row["kind"]])
    axes.set_yticks([])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="x", alpha=0.3)


def _cell(scores: Scores, best: bool) -> str:
    there = [score for score in scores if score is not None]
    if not there:
        return NOTHING
    text = f"{mean(there):.3f}" + (f" ± {stdev(there):.3f}" if len(there) > 1 else "")
    return f"**{text}**" if best else text
