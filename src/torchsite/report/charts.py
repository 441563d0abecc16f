"""Charts of one examination: every function takes the result of `examine` and returns a matplotlib figure.

    draw_confusion(result).savefig("confusion.svg")

Colours are those of Okabe and Ito, which stay apart for colour-blind eyes, on paper and on a dark screen.
"""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from torchsite.evaluation.comparison import Comparison
from torchsite.model.drawing import PlainFigure
from torchsite.objective import Term
from torchsite.report.format import bounds, method_name
from torchsite.results import Result

BLUE, ORANGE, GREEN, RED, SKY, PINK = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7"
GREY = "#808080"
COLOURS = (BLUE, ORANGE, GREEN, PINK, RED, SKY)
POSES = {"untransformed": ("as they are", BLUE), "transformed": ("in poses", ORANGE)}
TRAINING = {
    "losses": ("loss", "classification", *dict.fromkeys(("transformation", "equivariance", *Term.tags))),
    "validation": ("validation accuracy", "validation posed accuracy", "validation calibrated"),
}
AXES = {"angle": "degrees turned, either way", "shift": "shift, share of the side", "scale": "magnification"}
SHARES = ("sensitivity", "specificity")
MOST_WRITTEN = 20  # classes up to which a matrix has room for numbers


def new_chart(
    cols: int = 1, size: tuple[float, float] = (7.0, 3.0), **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side."""
    figure = PlainFigure(figsize=size, layout="constrained")
    panels = list(figure.subplots(1, cols, squeeze=False, **options)[0])
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=GREY, alpha=0.25, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=8)
    return figure, panels


def draw_counts(result: Result) -> Figure:
    """How many pictures each class has, in the data examined and, where known, in the data trained on."""
    sets = result.values["data"]
    names = next(iter(sets.values()))["classes"]
    figure, panels = new_chart(len(sets), (3.6 * len(sets), _height(len(names))), sharey=True)
    for axes, (role, found), colour in zip(panels, sets.items(), COLOURS, strict=False):
        axes.barh(range(len(names)), found["counts"], color=colour, height=0.7)
        axes.set_title(f"{role}: {sum(found['counts']):,} of {found['title']}", fontsize=9)
        axes.grid(visible=False, axis="y")
    _name_rows(panels[0], names)
    return figure


def draw_training(curves: Mapping[str, Sequence[tuple[int, float]]]) -> Figure:
    """The losses and the measures on validation pictures, step by step."""
    groups = {title: [name for name in names if name in curves] for title, names in TRAINING.items()}
    shown = {title: names for title, names in groups.items() if names}
    figure, panels = new_chart(max(len(shown), 1), (3.8 * max(len(shown), 1), 2.9))
    for axes, (title, names) in zip(panels, shown.items(), strict=False):
        for name, colour in zip(names, COLOURS, strict=False):
            steps, values = zip(*curves[name], strict=True)
            marker = "." if len(steps) < 40 else ""
            label = name.removeprefix("validation ")
            axes.plot(steps, values, color=colour, label=label, linewidth=1.5, marker=marker)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("step", fontsize=8)
        axes.legend(frameon=False, fontsize=8)
    return figure


def draw_per_class(result: Result) -> Figure:
    """The accuracy of every class with its interval, for pictures as they are and in poses."""
    found = {
        label: [entry["accuracy"] for entry in result.values["answers"][pose]["per_class"]]
        for pose, (label, _) in POSES.items()
    }
    return draw_intervals(classes(result), found, "accuracy")


def draw_labels(result: Result) -> Figure:
    """The sensitivity and specificity of every label with its interval."""
    labels = result.values["labels"]
    found = {share: [figures[share] for figures in labels.values()] for share in SHARES}
    return draw_intervals(list(labels), found, "share of right answers")


def draw_intervals(names: Sequence[str], found: Mapping[str, Sequence[Any]], what: str) -> Figure:
    """A row for each name: the estimates of each series beside each other, with their intervals."""
    figure, (axes,) = new_chart(1, (6.0, _height(len(names))))
    for number, (label, estimates) in enumerate(found.items()):
        show_points(axes, estimates, 0.15 * (2 * number - len(found) + 1), COLOURS[number], label)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(what, fontsize=8)
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    _name_rows(axes, names)
    return figure


def show_points(axes: Axes, estimates: Sequence[Any], shift: float, colour: str, label: str) -> None:
    """Estimates with their intervals, a row for each; those without a value are left out."""
    known = [(row, bounds(found)) for row, found in enumerate(estimates) if bounds(found)[0] is not None]
    for row, (value, low, high) in known:
        assert value is not None
        reach = None if low is None or high is None else [[max(value - low, 0)], [max(high - value, 0)]]
        name = label if row == known[0][0] else None
        axes.errorbar([value], [row + shift], xerr=reach, fmt="o", ms=4, color=colour, label=name)


def draw_confusion(result: Result, pose: str = "untransformed") -> Figure:
    """The confusion matrix: rows are true classes, the colour is the share of the row."""
    names, counts = classes(result), np.asarray(result.values["answers"][pose]["confusion"])
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    side = min(2.2 + 0.32 * len(names), 14)
    figure, (axes,) = new_chart(1, (side + 0.4, side))
    axes.grid(visible=False)
    cells = np.zeros((*shares.shape, 4))
    cells[..., :3] = [int(BLUE[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    cells[..., 3] = np.sqrt(shares)  # rare confusions are what one looks for
    axes.imshow(cells, interpolation="none")
    if len(names) <= MOST_WRITTEN:
        for (row, col), n in np.ndenumerate(counts):
            colour = "#ffffff" if shares[row, col] > 0.3 else "#000000"
            if n:
                axes.text(col, row, str(n), ha="center", va="center", fontsize=7, color=colour)
    turned = 0 if max(map(len, names)) < 3 else 90
    size = 8 if len(names) <= MOST_WRITTEN else 5
    axes.set_xticks(range(len(names)), names, rotation=turned, fontsize=size)
    axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.set_xlabel("predicted", fontsize=8)
    axes.set_ylabel("true", fontsize=8)
    return figure


def draw_calibration(result: Result) -> Figure:
    """Accuracy against confidence; on the diagonal the two are equal."""
    figure, panels = new_chart(2, (7.0, 2.9), width_ratios=(1, 1))
    for number, (pose, (label, colour)) in enumerate(POSES.items()):
        found = result.values["answers"][pose]["calibration"]
        bins = [b for b in found["bins"] if b["n"]]
        panels[0].plot(
            [b["confidence"] for b in bins],
            [b["accuracy"] for b in bins],
            color=colour,
            linewidth=1,
            label=f"{label}: error {found['error']:.3f}",
        )
        sizes = [60 * b["n"] / result.config["n_images"] + 6 for b in bins]
        panels[0].scatter(
            [b["confidence"] for b in bins], [b["accuracy"] for b in bins], s=sizes, color=colour, zorder=3
        )
        middles = [(b["low"] + b["high"]) / 2 + 0.02 * (2 * number - 1) for b in found["bins"]]
        panels[1].bar(middles, [b["n"] for b in found["bins"]], width=0.04, color=colour, label=label)
    panels[0].plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1)
    panels[0].set(xlim=(0, 1.02), ylim=(0, 1.02))
    panels[0].set_ylabel("accuracy", fontsize=8)
    panels[1].set_ylabel("pictures", fontsize=8)
    for axes in panels:
        axes.set_xlabel("confidence", fontsize=8)
        axes.legend(frameon=False, fontsize=8, loc="best")
    return figure


def draw_consistency(result: Result) -> Figure:
    """Raw, floor and calibrated self-consistency of the model's own explanation, against each parameter."""
    curves = result.values["self_consistency"]["curves"]
    figure, panels = new_chart(max(len(curves), 1), (3.8 * max(len(curves), 1), 2.9), sharey=True)
    looks = {"raw": (BLUE, "-"), "floor": (GREY, "--"), "calibrated": (ORANGE, "-"), "centred": (GREEN, ":")}
    for axes, (parameter, curve) in zip(panels, curves.items(), strict=False):
        for name, (colour, line) in looks.items():
            _curve(axes, curve, name, name, colour, line)
        axes.set_xlabel(AXES[parameter], fontsize=8)
        axes.set_ylim(min(0.0, axes.get_ylim()[0]), 1.02)
    panels[0].set_ylabel("self-consistency", fontsize=8)
    panels[-1].legend(frameon=False, fontsize=8)
    return figure


def draw_methods(result: Result) -> Figure:
    """Raw and calibrated self-consistency of every compared method against the angle."""
    found = comparison_of(result)
    cells = [cell for cell in found.cells if cell.metric == "self_consistency" and cell.values is not None]
    cells = [cell for cell in cells if "angle" in (cell.values or {})["curves"]]
    figure, panels = new_chart(2, (7.6, 3.1), sharey=True)
    for axes, score in zip(panels, ("raw", "calibrated"), strict=True):
        for number, cell in enumerate(cells):
            colour, line = COLOURS[number % len(COLOURS)], "--" if cell.method == "random" else "-"
            curve = (cell.values or {})["curves"]["angle"]
            _curve(axes, curve, score, words(cell.method), colour, line)
        axes.set_title(score, fontsize=9)
        axes.set_xlabel(AXES["angle"], fontsize=8)
    panels[0].set_ylim(min(0.0, panels[0].get_ylim()[0]), 1.02)
    panels[0].set_ylabel("self-consistency", fontsize=8)
    if cells:
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
        )
    return figure


def draw_curves(result: Result) -> Figure:
    """Hits against false alarms, precision against sensitivity, of each label."""
    figure, (left, right) = new_chart(2, (7.6, 3.4))
    left.plot([0, 1], [0, 1], ":", color=GREY)
    for (name, found), colour in zip(result.values["curves"].items(), cycle(COLOURS), strict=False):
        if found is not None:
            left.plot(*zip(*found["roc"], strict=True), color=colour, label=name, linewidth=1.5)
            right.plot(*zip(*found["precision_recall"], strict=True), color=colour, linewidth=1.5)
    for axes, across, up in ((left, "false alarms", "hits"), (right, "named of those that have it", "right")):
        axes.set_xlabel(across, fontsize=8)
        axes.set_ylabel(up, fontsize=8)
        axes.set_ylim(-0.02, 1.02)
    left.legend(frameon=False, fontsize=7)
    return figure


def comparison_of(result: Result) -> Comparison:
    """The comparison of methods that an examination holds."""
    return Comparison.from_result(Result(**result.values["comparison"]))


def classes(result: Result) -> list[str]:
    """The names of the classes examined."""
    names: list[str] = result.values["data"]["examined"]["classes"]
    return names


def words(name: str) -> str:
    """A method's name for people; SITE's own explanation is called so."""
    return {"self_explanation": "its own", "random": "random maps"}.get(name) or method_name(name)


def _curve(axes: Axes, curve: Mapping[str, Any], score: str, label: str, colour: str, line: str) -> None:
    """One score over the middles of the bins, with its interval."""
    edges = curve["edges"]
    points = [
        ((low + high) / 2, found[score])
        for low, high, found in zip(edges[:-1], edges[1:], curve["scores"], strict=True)
        if found[score]["value"] is not None and found[score]["low"] is not None
    ]
    if points:
        places = [place for place, _ in points]
        values, lows, highs = ([p[key] for _, p in points] for key in ("value", "low", "high"))
        axes.plot(places, values, color=colour, linestyle=line, marker=".", label=label, linewidth=1.5)
        axes.fill_between(places, lows, highs, color=colour, alpha=0.15, linewidth=0)


def _height(n_rows: int) -> float:
    return max(1.6, 0.9 + 0.22 * n_rows)


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
