"""Whether maps are true: the measures that a template cannot pass, for all methods on both models.

Claim:    ours flatter us. Consistency falls when the corners of posed pictures are not black, a good part
          of the evidence comes from pictures without content, one mean map explains most of all, and what
          a patch is said to be worth is only loosely what hiding it does. Beside the methods stand six
          map-makers that know nothing of the model: what fools a measure is no merit in it.
Command:  torchsite reproduce cifar10_truth   (or mnist_truth)
Cost:     `truth_steps.N_PICTURES` of the test set, in one pose; slow methods get fewer (`N_SLOW`).
          CIFAR-10 with the pyramid: about 75 minutes of one core. Two lanes can share the work, each with
          `truth_steps.measure(recipe, folder, models=("site",))` or ("black_box",); the command then gathers
          their steps. With --quick, a dozen digits.
"""

import time
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from torchsite.attribution import METHODS
from torchsite.configs import to_mapping
from torchsite.evaluation.comparison import Cell
from torchsite.metrics import IGNORANT
from torchsite.paper.cache import save_result
from torchsite.paper.experiment import Arrays
from torchsite.paper.methods import row_of
from torchsite.paper.models import pair_beside
from torchsite.paper.section import MethodRow, Pictures, head, on_model, own_first, row_name
from torchsite.paper.truth_steps import IGNORANT_MARK, steps
from torchsite.report.format import estimate, markdown_table, method_name
from torchsite.results import Result

# The columns of the table: what each is called, its measure, and where its score stands.
COLUMNS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "consistency, corners black": ("frame_control", ("black", "calibrated")),
    "corners filled": ("frame_control", ("filled", "calibrated")),
    "grey pictures, raw": ("frame_control", ("content_free", "raw")),
    "evidence, grey / real": ("frame_control", ("evidence", "ratio")),
    "one-map share": ("one_map_share", ("share",)),
    "patch deletion": ("patch_deletion", ("correlation",)),
    "its floor": ("patch_deletion", ("floor",)),
    "grid pointing, 2×2 (¼)": ("grid_pointing", ("share",)),
    "deletion, gain, black": ("deletion", ("fills", "black", "gain")),
    "deletion, gain, blur": ("deletion", ("fills", "blur", "gain")),
    "insertion, gain, black": ("insertion", ("fills", "black", "gain")),
    "insertion, gain, blur": ("insertion", ("fills", "blur", "gain")),
}
Scores = dict[tuple[str, str], dict[str, Any]]
SHOWN = ("corners filled", "patch deletion", "grid pointing, 2×2 (¼)", "one-map share")
OWN_SCORES = (
    "consistency, corners black",
    "corners filled",
    "evidence, grey / real",
    "one-map share",
    "patch deletion",
    "its floor",
)


class Row(MethodRow):
    """One measure of a method on a model."""

    metric: str
    values: Mapping[str, Any] | None


def run(
    recipe: str,
    folder: Path,
    *,
    methods: Sequence[str] | None = None,
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Measure every method on both models of the recipe; finished steps are taken from `folder`."""
    started = time.monotonic()
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    found = steps(pair, folder, methods=methods, quick=quick)
    table = [_row(row_of(*line), line[2]) for line in found]
    config = pair.description() | {"recipe": recipe, "quick": quick, "n_transforms": 1}
    config["family"] = to_mapping(pair.site.config.family)
    result = Result(f"{recipe}_truth", {"table": table}, config, 0, time.monotonic() - started)
    return save_result(result, folder)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """The scores that matter most, by method, on both models; black corners beside filled ones."""
    scores = _scores(result)
    kinds = list(dict.fromkeys(row["model"] for row in result.values["table"]))
    methods = list(dict.fromkeys(method for _, method in scores))
    figure = Figure(figsize=(3 * len(SHOWN) + 1.5, 0.26 * len(methods) + 1.4), layout="constrained")
    grid = figure.subplots(1, len(SHOWN), squeeze=False, sharey=True)[0]
    for axes, column in zip(grid, SHOWN, strict=True):
        for shift, kind in enumerate(kinds):
            for place, method in enumerate(methods):
                _point(axes, scores.get((kind, method), {}), column, place + 0.3 * shift - 0.15, f"C{shift}")
        axes.set_title(column, fontsize=9)
        axes.grid(axis="x", alpha=0.3)
    grid[0].set_yticks(range(len(methods)), [_name(method) for method in methods], fontsize=8)
    grid[0].set_ylim(len(methods) - 0.5, -0.5)
    marks = [Line2D([], [], marker="o", ls="", color=f"C{k}", label=on_model(n)) for k, n in enumerate(kinds)]
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks))
    return {result.name: figure}


def section(result: Result, pictures: Pictures) -> str:
    """All scores of all methods, then of the map-makers that know nothing, and what they say of us."""
    scores = _scores(result)
    rows = [
        [_name(method), on_model(kind), *(estimate(found.get(c), 3, interval=False) for c in COLUMNS)]
        for (kind, method), found in scores.items()
        if found
    ]
    return (
        head(result, "measures that a template cannot pass")
        + PLAIN_WORDS
        + (IGNORANT_WORDS if any(method.startswith(IGNORANT_MARK) for _, method in scores) else "")
        + "\n\n"
        + _own_words(scores)
        + markdown_table(["explainer", "", *COLUMNS], rows)
        + _notes(result)
        + pictures.chart(result.name, "Filled corners, patch deletion, grid pointing, one-map share")
    )


PLAIN_WORDS = (
    "Posed pictures have black corners, which tell a network the pose; a map can follow them instead of "
    "what is seen. So consistency is given with black corners, as in Table 1, and with corners filled (the "
    "picture's mean colour, another picture, a reflection; their mean). The floor of patch deletion is what "
    "the map of another picture gets. Grey pictures are explained for the class of the real one; for the "
    "class that the model sees in them there is more evidence."
)
IGNORANT_WORDS = (
    " The last rows of each model are map-makers that know nothing of it: a score that they reach is no "
    "merit."
)


def _own_words(scores: Scores) -> str:
    """What the measures say of SITE's own maps, in a sentence."""
    own = scores.get(("site", "self_explanation"), {})
    if any(own.get(name, {}).get("value") is None for name in OWN_SCORES):
        return ""
    black, filled, grey, one, patch, floor = (own[name]["value"] for name in OWN_SCORES)
    return (
        f"SITE's own maps: calibrated consistency is {black:.3f} with black corners and {filled:.3f} "
        f"with filled ones; grey pictures without content get {grey:.0%} of the evidence of real ones; one "
        f"mean map explains {one:.0%} of the energy of all; the rank correlation with hiding patches is "
        f"{patch:.3f}, where maps of other pictures get {floor:.3f}.\n\n"
    )


def _notes(result: Result) -> str:
    """How many pictures each measure saw, what does not apply, and what was left out."""
    table: list[Row] = result.values["table"]
    seen: dict[str, list[int]] = {}
    for row in table:
        seen.setdefault(row["metric"], []).append(row["n_images"])
    counts = [
        f"{metric} {max(n):,}" + (f" (slow methods {min(n):,})" if min(n) < max(n) else "")
        for metric, n in seen.items()
    ]
    first = {
        row_name(row): row["reason"] for row in reversed(table) if "reason" in row
    }  # one of each is enough
    reasons = [f"- {name}: {reason}" for name, reason in reversed(first.items())]
    measured = {row["method"] for row in table}
    left = [
        _name(name)
        for name in (*METHODS, *(IGNORANT_MARK + maker for maker in IGNORANT))
        if name not in measured
    ]
    missing = ["", f"Not measured yet: {', '.join(left)}."] if left else []
    return "\n".join(["\nPictures: " + ", ".join(counts) + ".", *reasons, *missing]) + "\n"


def _scores(result: Result) -> Scores:
    """The columns of each method on each model; SITE's own first, those that know nothing last."""
    table: list[Row] = own_first(result.values["table"])
    table.sort(key=lambda row: (row["model"] != "site", row["method"].startswith(IGNORANT_MARK)))
    found: Scores = {}
    for row in table:
        line = found.setdefault((row["model"], row["method"]), {})
        for name, (metric, path) in COLUMNS.items():
            if metric == row["metric"] and row["values"] is not None:
                line[name] = reduce(lambda values, step: values[step], path, row["values"])
    return found


def _point(axes: Axes, scores: Mapping[str, Any], column: str, height: float, colour: str) -> None:
    score = scores.get(column)
    if score is None or score["value"] is None:
        return
    value, low, high = (score[key] for key in ("value", "low", "high"))
    reach = None if low is None or high is None else [[max(value - low, 0)], [max(high - value, 0)]]
    axes.errorbar([value], [height], xerr=reach, fmt="o", ms=3.5, color=colour)


def _name(method: str) -> str:
    known = method.removeprefix(IGNORANT_MARK)
    return method_name(method) if known == method else f"knows nothing: {known.replace('_', ' ')}"


def _row(row: MethodRow, cell: Cell) -> Row:
    return cast(Row, row | {"metric": cell.metric, "values": cell.values})
