"""From steps to the board: scores of every row by seed, ranks by every measure, costs; plain data."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, stdev
from typing import Any, TypedDict

from experiments.leaderboard.columns import COLUMNS, RANKED
from experiments.leaderboard.entries import IGNORANT_MARK, OWN, Entry
from experiments.leaderboard.ranks import agreement, ranks
from experiments.leaderboard.steps import Line, Plan, training_of
from torchsite.errors import ConfigError
from torchsite.report.format import method_name

SEPARATOR = " · "


class Row(TypedDict):
    """One explainer of one model on one data set: its scores, seed by seed."""

    entry: str
    explainer: str
    title: str
    kind: str  # itself, post-hoc, ignorant
    scores: dict[str, list[float | None]]
    ranks: dict[str, float | None]
    n_images: dict[str, int]
    reasons: dict[str, str]


class Board(TypedDict):
    """All rows on one data set, how far measures agree, and what it took."""

    title: str
    rows: list[Row]
    seeds: list[int]
    kendalls_w: float
    n_ranked: int
    n_measures: int
    pmac: dict[str, list[float]]
    epochs: dict[str, int]
    gmac_per_view: dict[str, float]
    training_seconds: float
    measuring_seconds: float


def boards(asked: Plan, lines: Iterable[Line]) -> dict[str, Board]:
    """The board of every data set."""
    found = list(lines)
    return {
        field.name: _board(asked, field.name, [one for one in found if one.field == field.name])
        for field in asked.fields
    }


def _board(asked: Plan, name: str, lines: Sequence[Line]) -> Board:
    field = next(field for field in asked.fields if field.name == name)
    seeds = asked.seeds_of(field)
    rows = [
        _row(entry, explainer, [line for line in lines if line.entry == entry.name], seeds)
        for entry in asked.entries
        for explainer in entry.explainers
    ]
    if not rows:
        raise ConfigError(f"{name}: expected at least one entry with an explainer, got none")
    by_measure = rank_rows(rows)
    agreed, n_ranked, n_measures = agreement(by_measure)
    trainings = {
        entry.name: [training_of(asked, field, entry, seed) for seed in seeds] for entry in asked.entries
    }
    budgets = {name: [one.config["budget"] for one in found] for name, found in trainings.items()}
    return {
        "title": field.title,
        "rows": rows,
        "seeds": list(seeds),
        "kendalls_w": agreed,
        "n_ranked": n_ranked,
        "n_measures": n_measures,
        "pmac": {name: [one["pmac"] for one in found] for name, found in budgets.items()},
        "epochs": {name: int(found[0].config["training"]["epochs"]) for name, found in trainings.items()},
        "gmac_per_view": {name: found[0]["gmac_per_view"] for name, found in budgets.items()},
        "training_seconds": sum(one.seconds for found in trainings.values() for one in found),
        "measuring_seconds": sum(line.cell.seconds for line in lines),
    }


def _row(entry: Entry, explainer: str, lines: Sequence[Line], seeds: Sequence[int]) -> Row:
    own = [line for line in lines if line.explainer in (explainer, "model")]
    cells = {(line.seed, line.cell.metric): line.cell for line in own}
    scores: dict[str, list[float | None]] = {}
    for column in COLUMNS:
        values = [
            cells[seed, column.measure].values if (seed, column.measure) in cells else None for seed in seeds
        ]
        if any(value is not None for value in values):
            scores[column.title] = [None if value is None else column.score(value) for value in values]
    return {
        "entry": entry.name,
        "explainer": explainer,
        "title": row_title(entry, explainer),
        "kind": "itself"
        if explainer == OWN
        else "ignorant"
        if explainer.startswith(IGNORANT_MARK)
        else "post-hoc",
        "scores": scores,
        "ranks": {},
        "n_images": {line.cell.metric: line.n_images for line in own},
        "reasons": {line.cell.metric: line.cell.reason for line in own if line.cell.reason is not None},
    }


def row_title(entry: Entry, explainer: str) -> str:
    """How a row is called: a model, or a method on a model."""
    if explainer == OWN:
        return entry.title
    if explainer.startswith(IGNORANT_MARK):
        return f"knows nothing: {explainer.removeprefix(IGNORANT_MARK).replace('_', ' ')}"
    return f"{method_name(explainer)} on {entry.title}"


def rank_rows(rows: Sequence[Row]) -> dict[str, list[float | None]]:
    """Rank the rows that know something by each measure, in place; what was found, by measure."""
    ranked = [row for row in rows if row["kind"] != "ignorant"]
    found = {}
    for column in RANKED:
        means = [centre(row["scores"].get(column.title, [])) for row in ranked]
        if sum(one is not None for one in means) > 1:
            found[column.title] = ranks(means, column.better)
            for row, rank in zip(ranked, found[column.title], strict=True):
                row["ranks"][column.title] = rank
    return found


def centre(scores: Sequence[float | None]) -> float | None:
    """The mean over seeds; None where there is none."""
    there = [score for score in scores if score is not None]
    return mean(there) if there else None


def spread(scores: Sequence[float | None]) -> float | None:
    """The standard deviation over seeds; None for fewer than two."""
    there = [score for score in scores if score is not None]
    return stdev(there) if len(there) > 1 else None


def total(all_boards: Mapping[str, Board]) -> dict[str, Any]:
    """What everything took: hours by the clock of one core, and multiply-accumulates."""
    return {
        "training hours": sum(one["training_seconds"] for one in all_boards.values()) / 3600,
        "measuring hours": sum(one["measuring_seconds"] for one in all_boards.values()) / 3600,
        "pmac": sum(sum(found) for one in all_boards.values() for found in one["pmac"].values()),
        "trainings": sum(len(found) for one in all_boards.values() for found in one["pmac"].values()),
    }
