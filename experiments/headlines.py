"""The table at the top of the README: SITE, the black box, what knows nothing, and the paper, side by side.

Every number comes from a result file that measured the weights that ship. A measure of maps stands beside
Grad-CAM on the black box, and beside its null: what a guess gets, or a map that belongs to another picture.
Where SITE's result is missing, or is of other weights, so is its row; where the black box's is, its cell.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.provenance import Fingerprints, of_shipped
from experiments.registry import models_of
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


def headline_table(results: Results, shipped: Fingerprints) -> str:
    """The whole table in Markdown, and what has to be said of it; nothing where there are no results."""
    rows = [row for recipe in TITLES for row in _Shown(results, shipped, recipe).rows()]
    if not rows:
        return ""
    left_out = any(NOTHING in row[1:3] for row in rows)
    said = f"\n{NOTHING}: not measured on the weights that ship.\n" if left_out else ""
    return markdown_table(HEADER, rows) + said


def training_words(results: Results, shipped: Fingerprints) -> str:
    """How much arithmetic SITE's training took beside the black box's, where both are those that ship."""
    found = {}
    for recipe, title in TITLES.items():
        accuracy = results.get(f"accuracy_{recipe}")
        if accuracy is not None and of_shipped(accuracy, models_of(recipe), shipped):
            found[title] = accuracy.values.get("pmac")
    ratios = [
        f"{pmac['site'] / pmac['black_box']:.1f} times on {title}" for title, pmac in found.items() if pmac
    ]
    return " and ".join(ratios)


@dataclass(frozen=True)
class _Shown:
    """The rows of one data set, of results that measured the weights that ship."""

    results: Results
    shipped: Fingerprints
    recipe: str

    def rows(self) -> Iterator[list[str]]:
        """Accuracy, whether maps follow the picture, whether they are true."""
        rows = [*self._accuracy(), *self._consistency(), *self._truth()]
        if rows:
            yield [f"**{TITLES[self.recipe]}**", *[""] * (len(HEADER) - 1)]
            yield from rows

    def _of(self, kind: str, *names: str) -> Result | None:
        """The first of these results that measured the model of this kind that ships."""
        model = models_of(self.recipe)[kind != "site"]
        known = (self.results[name] for name in names if name in self.results and model in self.shipped)
        return next((result for result in known if of_shipped(result, [model], self.shipped)), None)

    def _accuracy(self) -> Iterator[list[str]]:
        name = f"accuracy_{self.recipe}"
        site, black_box = self._of("site", name), self._of("black_box", name)
        if site is None:
            return
        chance = 1 / len(site.config["site"]["model"]["classes"])
        for title, pose in ACCURACY.items():
            own = _percent(look_up(site.values, "site", "accuracy", pose))
            rival = black_box and _percent(look_up(black_box.values, "black_box", "accuracy", pose))
            yield [title, own, rival or NOTHING, f"{chance:.0%}", _paper(site.values["paper"], pose)]

    def _consistency(self) -> Iterator[list[str]]:
        """SITE's of the table of accuracies, Grad-CAM's of a table of methods."""
        site = self._of("site", f"accuracy_{self.recipe}")
        if site is None:
            return
        table = self._of("black_box", f"{self.recipe}_consistency", f"{self.recipe}_pointing")
        own = look_up(site.values, "site", "self_consistency")
        rival = method_row(table, *RIVAL).get("self_consistency")
        for title, score in CONSISTENCY.items():
            paper = (
                number(site.values["paper"].get("site_self_consistency"), 2) if score == "raw" else NOTHING
            )
            floor = ("floor",) if score == "raw" else None
            yield [title, *_map_cells(own, rival, (score,), floor), paper]

    def _truth(self) -> Iterator[list[str]]:
        name = f"{self.recipe}_truth"
        site, black_box = self._of("site", name), self._of("black_box", name)
        for title, (metric, path, null) in TRUTH.items():
            own = method_row(site, *OWN, metric).get("values")
            rival = method_row(black_box, *RIVAL, metric).get("values")
            if own is not None:
                yield [title, *_map_cells(own, rival, path, null), NOTHING]


def _map_cells(own: Any, rival: Any, path: tuple[str, ...], null: tuple[str, ...] | None) -> list[str]:
    """SITE's score, that of Grad-CAM with its own null if that differs, and SITE's null."""
    theirs = NOTHING if rival is None else f"Grad-CAM {_number(look_up(rival, *path))}"
    if null == ("floor",) and rival is not None:
        theirs += f" (null {_number(look_up(rival, *null))})"
    floor = "0" if null is None else _number(look_up(own, *null))
    return [_interval(look_up(own, *path)), theirs, floor]


def _paper(paper: Mapping[str, float], pose: str) -> str:
    names = (
        ("site", "black_box") if pose == "untransformed" else ("site_transformed", "black_box_transformed")
    )
    ours, theirs = (paper.get(name) for name in names)
    return NOTHING if ours is None or theirs is None else f"{ours:.1%} ({theirs:.1%})"


def method_row(result: Result | None, model: str, method: str, metric: str = "") -> Mapping[str, Any]:
    """The row of a method on a model; an empty one where it was not measured."""
    for row in () if result is None else result.values["table"]:
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
