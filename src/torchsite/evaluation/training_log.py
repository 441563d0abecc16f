"""The log of a training run as curves: what `fit` wrote to `logs/metrics.csv`, interruptions included."""

import csv
from pathlib import Path

from torchsite.errors import DataError

Curves = dict[str, list[tuple[int, float]]]
LOG_FILE = Path("logs") / "metrics.csv"
NOT_CURVES = ("epoch", "step")


def find_log(model_folder: Path | str) -> Path | None:
    """The log of the run that wrote this model, if the model is still in the run's folder."""
    path = Path(model_folder).resolve().parent / LOG_FILE
    return path if path.is_file() else None


def read_log(path: Path | str) -> Curves:
    """Every logged figure as (step, value) pairs.

    A run that was resumed keeps its earlier parts beside the log; where two parts have the same step, the
    later one counts.
    """
    newest = Path(path)
    if not newest.is_file():
        raise DataError(f"no training log at {newest}: expected the metrics.csv of a run")
    earlier = sorted(newest.parent.glob(f"{newest.stem}-*{newest.suffix}"), key=_number)
    found: dict[str, dict[int, float]] = {}
    for part in [*earlier, newest]:
        for step, name, value in _rows(part):
            found.setdefault(name, {})[step] = value
    return {name: sorted(points.items()) for name, points in sorted(found.items())}


def _rows(path: Path) -> list[tuple[int, str, float]]:
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            return [
                (int(row["step"]), name, float(value))
                for row in csv.DictReader(lines)
                for name, value in row.items()
                if value and name not in NOT_CURVES
            ]
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise DataError(f"{path} is not the log of a training run ({error!r})") from error


def _number(path: Path) -> int:
    """`metrics-12.csv` is the twelfth part."""
    digits = path.stem.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0
