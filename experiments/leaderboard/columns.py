"""What the board shows: each column's measure, where its score stands in a cell, and which way is better."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.leaderboard.steps import ACCURACY, COST
from torchsite.report.format import look_up


@dataclass(frozen=True)
class Column:
    """A score: by a measure, at a path in its values; its `size` alone where the sign means nothing.

    `better` is 1 where more is better, -1 where less is, 0 where the figure stands beside another to be read
    with it. `of_model` scores are shared by all explainers of a model.
    """

    title: str
    measure: str
    path: tuple[str, ...]
    better: int = 1
    size: bool = False
    of_model: bool = False

    def score(self, values: Mapping[str, Any]) -> float | None:
        """The score in what a measure found; None where it could not be found."""
        found = look_up(values, *self.path)
        value = found.get("value") if isinstance(found, Mapping) else found
        return None if value is None else abs(float(value)) if self.size else float(value)


def _gain(measure: str, fill: str, *of: str) -> tuple[str, tuple[str, ...]]:
    return measure, ("fills", fill, *of, "gain")


COLUMNS: tuple[Column, ...] = (
    Column("accuracy upright", ACCURACY, ("untransformed",), of_model=True),
    Column("accuracy posed", ACCURACY, ("transformed",), of_model=True),
    Column("consistency raw", "frame_control", ("black", "raw"), 0),
    Column("its floor", "frame_control", ("black", "floor"), 0),
    Column("calibrated, black", "frame_control", ("black", "calibrated")),
    Column("calibrated, filled", "frame_control", ("filled", "calibrated")),
    Column("patch deletion", "patch_deletion", ("correlation",)),
    Column("floor of deletion", "patch_deletion", ("floor",), 0),
    Column("grid pointing (¼)", "grid_pointing", ("share",)),
    Column("mask-k gain, black", *_gain("mask_k", "black", "accuracy")),
    Column("mask-k gain, blur", *_gain("mask_k", "blur", "accuracy")),
    Column("insertion gain, black", *_gain("insertion", "black")),
    Column("insertion gain, blur", *_gain("insertion", "blur")),
    Column("deletion gain, black", *_gain("deletion", "black"), -1),
    Column("deletion gain, blur", *_gain("deletion", "blur"), -1),
    Column("sanity |ρ|", "sanity", ("score",), -1, size=True),
    Column("floor of sanity", "sanity", ("floor",), 0),
    Column("energy / area", "energy_pointing", ("untransformed", "ratio")),
    Column("cost / forward", COST, ("ratio",), -1),
)
RANKED: tuple[Column, ...] = tuple(column for column in COLUMNS if column.better and not column.of_model)
