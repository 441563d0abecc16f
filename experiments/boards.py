"""Boards: rows with a score for each seed, as tables of mean ± spread, as dots, and in plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean, stdev

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.tables import IGNORANT_MARK, Place, Row, explainer_name
from torchsite.evaluation.comparison import MODEL
from torchsite.metrics.similarity import spearman
from torchsite.report.format import NOTHING, bounds, look_up, markdown_table, number

OWN, POST_HOC, IGNORANT = "itself", "post-hoc", "knows nothing"
COLOURS = {OWN: "C0", POST_HOC: "C1", IGNORANT: "0.6"}


@dataclass(frozen=True)
class Column:
    """A score: the measure and where in its values it stands; without a place, what a map costs.

    With `floor` it is how far the score is above that, as a share of the way to 1. `better` is 1 where more
    is better, -1 where less is. `of_model` scores are shared by all explainers of a model.
    """

    title: str
    metric: str
    path: Place = ()
    better: int = 1
    of_model: bool = False
    floor: Place = ()

    def of(self, row: Row | None) -> float | None:
        """The score in the row of its measure; None where there is none."""
        if row is None or row["values"] is None:
            return None
        if not self.path:
            cost: float | None = row["ms_per_image"]
            return cost
        value, floor = (bounds(look_up(row["values"], *path))[0] for path in (self.path, self.floor))
        if value is None or not self.floor:
            return value
        return None if floor is None else (value - floor) / (1 - floor)


@dataclass(frozen=True)
class Line:
    """One explainer of one model: what both are called, and its scores by column, one for each seed."""

    model: str
    name: str
    method: str
    scores: Mapping[str, Sequence[float | None]]

    @property
    def kind(self) -> str:
        """Whether a model explains itself, is explained by a method, or by what knows nothing of it."""
        return OWN if self.method == OWN else IGNORANT if self.method.startswith(IGNORANT_MARK) else POST_HOC

    @property
    def title(self) -> str:
        """What the row is called."""
        method = explainer_name(self.method)
        return {OWN: self.name, POST_HOC: f"{method} on {self.name}", IGNORANT: method}[self.kind]

    def known(self, column: str) -> list[float]:
        """The scores of a column that are there."""
        return [score for score in self.scores.get(column, []) if score is not None]

    def mean(self, column: str) -> float | None:
        """The mean over seeds; None where there is none."""
        return mean(known) if (known := self.known(column)) else None


Board = Sequence[Line]


def board_of(rows: Sequence[Row], names: Mapping[str, str], columns: Sequence[Column]) -> Board:
    """The lines of all models, as they are named, from the rows of every seed."""
    found = {(row["model"], row["method"], row["metric"], row["seed"]): row for row in rows}
    seeds = list(dict.fromkeys(row["seed"] for row in rows))

    def line(model: str, method: str) -> Line:
        def scores(one: Column) -> list[float | None]:
            who = MODEL if one.of_model else method
            return [one.of(found.get((model, who, one.metric, seed))) for seed in seeds]

        return Line(model, names[model], method, {one.title: scores(one) for one in columns})

    explained = dict.fromkeys((row["model"], row["method"]) for row in rows if row["method"] != MODEL)
    return [line(*one) for one in sorted(explained, key=lambda one: one[1].startswith(IGNORANT_MARK))]


def table_of(board: Board, columns: Sequence[Column]) -> str:
    """Every score of every row, mean ± spread over seeds; the best of those that know something in bold."""
    best = {one.title: leaders(board, one)[0] for one in columns}

    def cell(line: Line, column: str) -> str:
        known = line.known(column)
        if not known:
            return NOTHING
        text = f"{mean(known):.3f}" + (f" ± {stdev(known):.3f}" if len(known) > 1 else "")
        return f"**{text}**" if line.title in best[column] else text

    rows = [[line.title, *(cell(line, one.title) for one in columns)] for line in board]
    return markdown_table(["explainer", *(one.title for one in columns)], rows)


def first_words(board: Board, columns: Sequence[Column], ours: str = "site") -> str:
    """By which columns our row is first, and who is where it is not; whom a row that knows nothing beats."""
    own = next((line for line in board if (line.model, line.kind) == (ours, OWN)), None)
    first, behind, fooled = [], [], []
    for one in columns:
        (names, best), (_, nothing) = leaders(board, one), leaders(board, one, ignorant=True)
        score = own.mean(one.title) if own else None
        if own and score is not None and best is not None:
            if own.title in names:
                first.append(one.title)
            else:
                behind.append(f"{one.title}: {score:.3g}, {' and '.join(names)} {one.better * best:.3g}")
        known = best is not None and nothing is not None and one.better > 0 and not one.of_model
        if known and nothing >= best:  # type: ignore[operator]  # both are there
            fooled.append(one.title)
    said, n = [], len(first) + len(behind)
    if own and n:
        which = f" ({'; '.join(first)})." if first else "."
        said.append(f"{own.title} is first in {len(first)} of {n} columns{which}")
    if behind:
        said.append(f"**It is not first** in these: {'; '.join(behind)}.")
    if fooled:
        said.append(f"A row that knows nothing is ahead of all others in: {'; '.join(fooled)}.")
    return " ".join(said)


def leaders(board: Board, column: Column, *, ignorant: bool = False) -> tuple[list[str], float | None]:
    """The rows with the best mean, among those that know something or those that do not, and that mean.

    More is better in it, whatever is in the column.
    """
    found = {line.title: line.mean(column.title) for line in board if (line.kind == IGNORANT) == ignorant}
    means = {title: column.better * value for title, value in found.items() if value is not None}
    best = max(means.values(), default=None)
    return [title for title, value in means.items() if value == best], best


def agreement(boards: Sequence[Board], columns: Sequence[Column]) -> str:
    """Spearman's rank correlation of each two columns over the rows, its mean over the boards."""

    def cell(one: str, other: str) -> str:
        found = []
        for board in boards:
            pairs = [(line.mean(one), line.mean(other)) for line in board]
            known = [(a, b) for a, b in pairs if a is not None and b is not None]
            maps = torch.tensor(known, dtype=torch.float64).reshape(-1, 1, 2)
            found += [float(spearman(maps[..., 0][None], maps[..., 1][None]))] if len(maps) > 2 else []
        return number(mean(found) if found else None, 2)

    names = [one.title for one in columns]
    cells = {pair: cell(*pair) for pair in combinations(names, 2)}
    rows = [[name, *(cells.get((other, name), "") for other in names[:-1])] for name in names[1:]]
    return markdown_table(["", *names[:-1]], rows)


def dots(boards: Mapping[str, Board], shown: Sequence[str]) -> Figure:
    """Some scores of every row on every data set: a dot for each seed, a bar at their mean."""
    n_rows = max(len(board) for board in boards.values())
    size = (2.4 * len(shown) + 2.4, (0.2 * n_rows + 0.9) * len(boards))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(boards), len(shown), squeeze=False, sharex="col")
    for panels, (title, board) in zip(grid, boards.items(), strict=True):
        for axes, column in zip(panels, shown, strict=True):
            _dots(axes, board, column)
        titles = [line.title for line in board]
        panels[0].set_yticks(range(len(titles)), titles, fontsize=7)
        panels[0].set_ylabel(title, fontsize=8)
    for axes, column in zip(grid[0], shown, strict=True):
        axes.set_title(column, fontsize=9)
    return figure


def _dots(axes: Axes, board: Board, column: str) -> None:
    for place, line in enumerate(board):
        known, colour = line.known(column), COLOURS[line.kind]
        axes.plot(known, [place] * len(known), "o", ms=3, alpha=0.7, color=colour)
        axes.plot([mean(known)] if known else [], [place] if known else [], "|", ms=10, color=colour)
    axes.set_yticks([])
    axes.set_ylim(len(board) - 0.5, -0.5)
    axes.grid(axis="x", alpha=0.3)
