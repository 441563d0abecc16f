"""The table at the top of the README: SITE, the black box, what knows nothing, and the paper, side by side.

Every number comes from a result file. A measure of maps stands beside Grad-CAM on the black box, and beside
its null: what a guess gets, or a map that belongs to another picture. Where a result is missing, so is its
row.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from torchsite.report.format import NOTHING, look_up, markdown_table, number
from torchsite.results import Result

Results = Mapping[str, Result]
TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
HEADER = ["", "SITE", "black box", "knows nothing", "paper: SITE (black box)"]
OWN, RIVAL = ("site", "self_explanation"), ("black_box", "grad_cam")

# How tables call a measure, and where the result of an experiment keeps it and its null.
ACCURACY = {"accuracy, upright": "untransformed", "accuracy, turned and shifted": "transformed"}
CONSISTENCY = {"the map follows, raw cosine": "raw", "the map follows, above its floor": "calibrated"}
TRUTH = {
    "the same with filled corners": ("frame_control", ("filled", "calibrated"), None),
    "hiding a patch does what the map says": ("patch_deletion", ("correlation",), ("floor",)),
    "the map finds the picture in a mosaic of four": ("grid_pointing", ("share",), ("chance",)),
}


def headline_table(results: Results) -> str:
    """The whole table in Markdown; nothing where there are no results."""
    rows = [row for recipe in TITLES for row in rows_of(results, recipe)]
    return markdown_table(HEADER, rows) if rows else ""


def rows_of(results: Results, recipe: str) -> Iterator[list[str]]:
    """The rows of one data set."""
    found = results.get(f"accuracy_{recipe}")
    if found is not None:
        yield [f"**{TITLES[recipe]}**", *[""] * (len(HEADER) - 1)]
        yield from _accuracy_rows(found)
    yield from _consistency_rows(results, recipe)
    yield from _truth_rows(results, recipe)


def _accuracy_rows(result: Result) -> Iterator[list[str]]:
    chance = 1 / len(result.config["site"]["model"]["classes"])
    for title, pose in ACCURACY.items():
        ours = [_percent(look_up(result.values, kind, "accuracy", pose)) for kind in ("site", "black_box")]
        yield [title, *ours, f"{chance:.0%}", _paper(result.values["paper"], pose)]


def _consistency_rows(results: Results, recipe: str) -> Iterator[list[str]]:
    """SITE's beside its accuracy, Grad-CAM's of the table of methods; MNIST's came with the pointing game."""
    name = f"{recipe}_consistency" if f"{recipe}_consistency" in results else f"{recipe}_pointing"
    accuracy = results.get(f"accuracy_{recipe}")
    if name not in results or accuracy is None:
        return
    own = look_up(accuracy.values, "site", "self_consistency")
    rival = method_row(results[name], *RIVAL).get("self_consistency")
    paper = accuracy.values["paper"]
    for title, score in CONSISTENCY.items():
        said = number(paper.get("site_self_consistency"), 2) if score == "raw" else NOTHING
        floor = ("floor",) if score == "raw" else None
        yield [title, *_map_cells(own, rival, (score,), floor), said]


def _truth_rows(results: Results, recipe: str) -> Iterator[list[str]]:
    if f"{recipe}_truth" not in results:
        return
    table = results[f"{recipe}_truth"]
    for title, (metric, path, null) in TRUTH.items():
        own, rival = (method_row(table, *who, metric).get("values") for who in (OWN, RIVAL))
        if own is not None:
            yield [title, *_map_cells(own, rival, path, null), NOTHING]


def _map_cells(own: Any, rival: Any, path: tuple[str, ...], null: tuple[str, ...] | None) -> list[str]:
    """SITE's score, that of Grad-CAM with its own null if that differs, and SITE's null."""
    theirs = f"Grad-CAM {_number(look_up(rival, *path))}"
    if null == ("floor",):
        theirs += f" (null {_number(look_up(rival, *null))})"
    floor = "0" if null is None else _number(look_up(own, *null))
    return [_interval(look_up(own, *path)), theirs, floor]


def _paper(paper: Mapping[str, float], pose: str) -> str:
    names = (
        ("site", "black_box") if pose == "untransformed" else ("site_transformed", "black_box_transformed")
    )
    ours, theirs = (paper.get(name) for name in names)
    return NOTHING if ours is None or theirs is None else f"{ours:.1%} ({theirs:.1%})"


def method_row(result: Result, model: str, method: str, metric: str = "") -> Mapping[str, Any]:
    """The row of a method on a model; an empty one where it was not measured."""
    for row in result.values["table"]:
        if (row["model"], row["method"], row.get("metric", "")) == (model, method, metric):
            return row
    return {}


def _percent(found: Any) -> str:
    return (
        NOTHING
        if not found
        else f"{found['value']:.1%} [{100 * found['low']:.1f}, {100 * found['high']:.1f}]"
    )


def _interval(found: Any) -> str:
    return NOTHING if not found else f"{found['value']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


def _number(found: Any) -> str:
    value = found.get("value") if isinstance(found, Mapping) else found
    return number(value, 2)
