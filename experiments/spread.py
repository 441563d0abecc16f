"""Trainings from several seeds side by side: their scores, the mean, and how far they lie apart."""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from torchsite.report.format import look_up, markdown_table

SEEDS = (0, 1, 2)


def table_of_seeds(
    rows: Mapping[str, Sequence[str]],
    seeds: Mapping[str, Mapping[str, Any]],
    beside: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:
    """One line for each score, found at its path in what was measured of each seed; `beside` are others.

    A score that a seed has not is left out.
    """
    beside, lines = beside or {}, []
    for title, path in rows.items():
        values = _values(seeds, path)
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            others = ["–" if value is None else f"{value:.3f}" for value in _values(beside, path)]
            lines.append([title, *(f"{value:.3f}" for value in known), spread_text(known), *others])
    header = ["", *(f"seed {seed}" for seed in seeds), "mean ± deviation", *beside]
    return markdown_table(header, lines)


def spread_text(values: Sequence[float]) -> str:
    """The mean, and the standard deviation between trainings."""
    return f"{mean(values):.3f} ± {stdev(values):.3f}"


def _values(found: Mapping[str, Mapping[str, Any]], path: Sequence[str]) -> list[float | None]:
    return [_value(one, path) for one in found.values()]


def _value(found: Mapping[str, Any], path: Sequence[str]) -> float | None:
    score = look_up(found, *path)
    return None if score is None or score["value"] is None else float(score["value"])
