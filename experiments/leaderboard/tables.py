"""The board in Markdown and as a figure, from plain data alone."""

from collections.abc import Mapping, Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.leaderboard.board import Board, Row, centre, spread
from experiments.leaderboard.columns import COLUMNS, RANKED, Column
from torchsite.report.format import NOTHING, markdown_table

OURS = "site"
WEAK = 0.25  # a posed accuracy below which maps explain answers that are mostly wrong
DOTS = ("accuracy posed", "calibrated, filled", "patch deletion", "grid pointing (¼)")
COLOURS = {"itself": "C0", "post-hoc": "C1", "ignorant": "0.6"}


def table_of(board: Board) -> str:
    """Every score of every row, mean ± spread over seeds; the best of those that know something in bold."""
    columns = [c for c in COLUMNS if any(c.title in row["scores"] for row in board["rows"])]
    best = {column.title: best_rows(board, column) for column in columns}
    rows = [
        [row["title"], *(_cell(row, column, row["title"] in best[column.title]) for column in columns)]
        for row in board["rows"]
    ]
    return markdown_table(["explainer", *(column.title for column in columns)], rows)


def best_rows(board: Board, column: Column) -> list[str]:
    """The rows with the best mean, among those that know something; none where no way is better."""
    there = _means(board, column, ignorant=False)
    return [title for title, value in there.items() if column.better and value == max(there.values())]


def _cell(row: Row, column: Column, best: bool) -> str:
    scores = row["scores"].get(column.title, [])
    middle, reach = centre(scores), spread(scores)
    if middle is None:
        return NOTHING
    digits = 1 if column.title == "cost / forward" else 3
    text = f"{middle:.{digits}f}" + (f" ± {reach:.{digits}f}" if reach is not None else "")
    return f"**{text}**" if best else text


def plain_words(board: Board, ours: str = OURS) -> str:
    """By which measures our row is first, and who is where it is not; computed from the ranks."""
    own = [row for row in board["rows"] if row["entry"] == ours and row["kind"] == "itself"]
    if not own:
        return ""
    title, first, behind = own[0]["title"], [], []
    for column in RANKED:
        rank = own[0]["ranks"].get(column.title)
        if rank is None:
            continue
        leaders = best_rows(board, column)
        n = sum(row["ranks"].get(column.title) is not None for row in board["rows"])
        if title in leaders:
            first.append(column.title)
        else:
            behind.append(f"{column.title}: {rank:g} of {n}, first is {' and '.join(leaders)}")
    n_all = len(first) + len(behind)
    accuracy = next(column for column in COLUMNS if column.title == "accuracy posed")
    leaders = best_rows(board, accuracy)
    models = {row["title"].split(" on ")[-1] for row in board["rows"] if row["title"] in leaders}
    if title not in leaders and models:
        best, mine = max(_means(board, accuracy, False).values()), centre(own[0]["scores"][accuracy.title])
        behind.append(f"accuracy posed: {mine or 0:.3f} against {best:.3f} of {' and '.join(sorted(models))}")
    words = f"{title} is first by {len(first)} of {n_all} measures of maps"
    words += f" ({'; '.join(first)})." if first else "."
    return words + (f" **It is not first** by these: {'; '.join(behind)}." if behind else "")


def weak_words(board: Board) -> str:
    """A warning where the models of this budget hardly know the classes; else nothing."""
    accuracy = next(column for column in COLUMNS if column.title == "accuracy posed")
    middle = median(_means(board, accuracy, ignorant=False).values() or [1.0])
    if middle >= WEAK:
        return ""
    return (
        f" **The models hardly know the classes here**: half of the rows are of models with a posed accuracy "
        f"of at most {middle:.2f}, so this board says little of maps that explain a good answer."
    )


def fooled_words(board: Board) -> str:
    """By which measures a row that knows nothing of any model beats all that know something."""
    fooled = []
    for column in RANKED:
        means = {kind: _means(board, column, kind) for kind in (True, False)}
        if means[True] and means[False]:
            title, best = max(means[True].items(), key=lambda one: one[1])
            if best >= max(means[False].values()):
                fooled.append(f"{column.title} ({title.partition(': ')[2]})")
    if not fooled:
        return "By no measure does a row that knows nothing beat all others."
    return f"A row that knows nothing beats all others by: {'; '.join(fooled)}."


def _means(board: Board, column: Column, ignorant: bool) -> dict[str, float]:
    """The mean scores of the rows that know something, or of those that do not; more is better."""
    rows = [row for row in board["rows"] if (row["kind"] == "ignorant") == ignorant]
    found = {row["title"]: centre(row["scores"].get(column.title, [])) for row in rows}
    return {title: column.better * value for title, value in found.items() if value is not None}


def agreement_words(board: Board) -> str:
    """Kendall's W, in a sentence."""
    m = board["n_measures"]
    return (
        f"Agreement of the {m} measures on the {board['n_ranked']} rows that all of them rank: Kendall's W = "
        f"{board['kendalls_w']:.2f}, where 1 is the same order by all and {1 / max(m, 1):.2f} is what "
        "unrelated measures give."
    )


def rank_figure(board: Board) -> Figure:
    """Ranks as a map of numbers: rows by measures, the best light, rows in the order of their mean rank."""
    rows = [row for row in board["rows"] if row["ranks"]]
    rows.sort(key=lambda row: centre(list(row["ranks"].values())) or 0.0)
    columns = [column.title for column in RANKED if any(column.title in row["ranks"] for row in rows)]
    table = [[row["ranks"].get(column) for column in columns] for row in rows]
    figure = Figure(figsize=(0.62 * len(columns) + 3.4, 0.3 * len(rows) + 2.0), layout="constrained")
    axes = figure.subplots()
    values = [[float("nan") if rank is None else rank for rank in line] for line in table]
    axes.imshow(values, cmap="viridis_r", aspect="auto", vmin=1, vmax=max(2, len(rows)))
    for y, line in enumerate(table):
        for x, rank in enumerate(line):
            text = "" if rank is None else f"{rank:g}"
            dark = rank is not None and rank > len(rows) / 2
            axes.text(x, y, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    axes.set_xticks(range(len(columns)), columns, rotation=50, ha="right", fontsize=8)
    axes.set_yticks(range(len(rows)), [row["title"] for row in rows], fontsize=8)
    axes.set_title(f"{board['title']}: rank by each measure, best mean rank on top", fontsize=9)
    return figure


def dot_figure(boards: Mapping[str, Board], shown: Sequence[str] = DOTS) -> Figure:
    """Four scores of every row on every data set: a dot for each seed, a bar at their mean."""
    names = list(boards)
    n_rows = max(len(board["rows"]) for board in boards.values())
    size = (2.6 * len(shown) + 2.4, (0.2 * n_rows + 0.9) * len(names))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(names), len(shown), squeeze=False, sharex="col")
    for line, name in zip(grid, names, strict=True):
        for axes, column in zip(line, shown, strict=True):
            _dots(axes, boards[name]["rows"], column)
        titles = [row["title"] for row in boards[name]["rows"]]
        line[0].set_yticks(range(len(titles)), titles, fontsize=7)
        line[0].set_ylabel(boards[name]["title"], fontsize=8)
    for axes, column in zip(grid[0], shown, strict=True):
        axes.set_title(column, fontsize=9)
    return figure


def _dots(axes: Axes, rows: Sequence[Row], column: str) -> None:
    for place, row in enumerate(rows):
        found = [score for score in row["scores"].get(column, []) if score is not None]
        colour = COLOURS[row["kind"]]
        axes.plot(found, [place] * len(found), "o", ms=3, alpha=0.7, color=colour)
        if found:
            axes.plot([sum(found) / len(found)], [place], "|", ms=10, color=colour)
    axes.set_yticks([])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="x", alpha=0.3)
