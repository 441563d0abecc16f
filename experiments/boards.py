"""Boards: rows with a score for each seed, as tables of mean ± spread, as dots, and in plain words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.study import IGNORANT_MARK
from torchsite.evaluation.comparison import Cell
from torchsite.report.format import NOTHING, bounds, look_up, markdown_table, method_name

OWN, POST_HOC, IGNORANT = "itself", "post-hoc", "knows nothing"
COLOURS = {OWN: "C0", POST_HOC: "C1", IGNORANT: "0.6"}

Board = Mapping[str, Any]


class Missing(Exception):
    """A score that a measure could not find."""


class Found(Protocol):
    """What measures found for one row and seed: the value at a path within the values of a measure."""

    def __call__(self, measure: str, *path: str) -> float:
        """Fails with `Missing` where there is none."""


@dataclass(frozen=True)
class Column:
    """A score made of what measures found.

    `better` is 1 where more is better, -1 where less is, 0 where neither is.
    `of_model` scores are shared by all explainers of a model.
    """

    title: str
    score: Callable[[Found], float]
    better: int = 1
    of_model: bool = False


def row_of(
    entry: str,
    title: str,
    explainer: str,
    cells: Mapping[tuple[int, str], tuple[int, Cell]],
    seeds: Sequence[int],
    columns: Sequence[Column],
) -> dict[str, Any]:
    """One explainer of one model: its scores seed by seed, how many pictures, why some are missing."""
    kind = OWN if explainer == OWN else IGNORANT if explainer.startswith(IGNORANT_MARK) else POST_HOC
    names = {
        OWN: title,
        POST_HOC: f"{method_name(explainer)} on {title}",
        IGNORANT: f"knows nothing: {explainer.removeprefix(IGNORANT_MARK).replace('_', ' ')}",
    }
    return {
        "entry": entry,
        "explainer": explainer,
        "title": names[kind],
        "kind": kind,
        "scores": {one.title: [_score(one, cells, seed) for seed in seeds] for one in columns},
        "n_images": {metric: n for (_, metric), (n, _) in cells.items()},
        "reasons": {
            metric: cell.reason for (_, metric), (_, cell) in cells.items() if cell.reason is not None
        },
    }


def _score(column: Column, cells: Mapping[tuple[int, str], tuple[int, Cell]], seed: int) -> float | None:
    def found(measure: str, *path: str) -> float:
        _, cell = cells.get((seed, measure), (0, None))
        if cell is None or cell.values is None:
            raise Missing
        if path == ("ms",):
            value = 1000 * cell.explain_seconds / cell.n_explained if cell.n_explained else None
        else:
            value = bounds(look_up(cell.values, *path))[0]
        if value is None:
            raise Missing
        return value

    try:
        return column.score(found)
    except Missing:
        return None


def table_of_rows(board: Board, columns: Sequence[Column]) -> str:
    """Every score of every row, mean ± spread over seeds; the best of those that know something in bold."""
    best = {one.title: _leaders(board, one) for one in columns}
    rows = [
        [
            row["title"],
            *(_cell(row["scores"].get(one.title, []), row["title"] in best[one.title]) for one in columns),
        ]
        for row in board["rows"]
    ]
    counts: dict[str, set[int]] = {}
    reasons = []
    for row in board["rows"]:
        for metric, n in row["n_images"].items():
            counts.setdefault(metric, set()).add(n)
        reasons += [
            f"- {row['title']}, {metric.replace('_', ' ')}: {why}" for metric, why in row["reasons"].items()
        ]
    seen = ", ".join(
        f"{metric.replace('_', ' ')} {max(n)}" + (f" (slow methods {min(n)})" if len(n) > 1 else "")
        for metric, n in counts.items()
    )
    notes = "\n".join([f"\nPictures: {seen}.", *reasons]) + "\n"
    return markdown_table(["explainer", *(one.title for one in columns)], rows) + notes


def first_words(board: Board, columns: Sequence[Column], ours: str = "site") -> str:
    """By which columns our row is first, and who is where it is not; whom a row that knows nothing beats."""
    own = [row for row in board["rows"] if (row["entry"], row["kind"]) == (ours, OWN)]
    first, behind, fooled = [], [], []
    for one in columns:
        leaders, best = _leaders(board, one), _best(board, one, False)
        score = centre(own[0]["scores"].get(one.title, [])) if own else None
        if one.better and score is not None and best is not None:
            if own[0]["title"] in leaders:
                first.append(one.title)
            else:
                behind.append(f"{one.title}: {score:.3g}, {' and '.join(leaders)} {one.better * best:.3g}")
        nothing = _best(board, one, True)
        if (
            one.better > 0
            and not one.of_model
            and best is not None
            and nothing is not None
            and nothing >= best
        ):
            fooled.append(one.title)
    said = []
    if first or behind:
        said.append(
            f"{own[0]['title']} is first in {len(first)} of {len(first) + len(behind)} columns"
            + (f" ({'; '.join(first)})." if first else ".")
        )
    if behind:
        said.append(f"**It is not first** in these: {'; '.join(behind)}.")
    if fooled:
        said.append(f"A row that knows nothing is ahead of all others in: {'; '.join(fooled)}.")
    return " ".join(said)


def centre(scores: Sequence[float | None]) -> float | None:
    """The mean over seeds; None where there is none."""
    there = [score for score in scores if score is not None]
    return mean(there) if there else None


def spread(scores: Sequence[float | None]) -> float | None:
    """The standard deviation over seeds; None for fewer than two."""
    there = [score for score in scores if score is not None]
    return stdev(there) if len(there) > 1 else None


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


def _dots(axes: Axes, rows: Sequence[Mapping[str, Any]], column: str) -> None:
    for place, row in enumerate(rows):
        found = [score for score in row["scores"].get(column, []) if score is not None]
        axes.plot(found, [place] * len(found), "o", ms=3, alpha=0.7, color=COLOURS[row["kind"]])
        if found:
            axes.plot([mean(found)], [place], "|", ms=10, color=COLOURS[row["kind"]])
    axes.set_yticks([])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="x", alpha=0.3)


def _means(board: Board, column: Column, ignorant: bool) -> dict[str, float]:
    """The mean scores of the rows that know something, or of those that do not; more is better."""
    rows = [row for row in board["rows"] if (row["kind"] == IGNORANT) == ignorant]
    found = {row["title"]: centre(row["scores"].get(column.title, [])) for row in rows}
    return {title: column.better * value for title, value in found.items() if value is not None}


def _best(board: Board, column: Column, ignorant: bool) -> float | None:
    return max(_means(board, column, ignorant).values(), default=None)


def _leaders(board: Board, column: Column) -> list[str]:
    """The rows with the best mean among those that know something; none where no way is better."""
    best = _best(board, column, False)
    return [title for title, value in _means(board, column, False).items() if column.better and value == best]


def _cell(scores: Sequence[float | None], best: bool) -> str:
    middle, reach = centre(scores), spread(scores)
    if middle is None:
        return NOTHING
    text = f"{middle:.3f}" + (f" ± {reach:.3f}" if reach is not None else "")
    return f"**{text}**" if best else text
