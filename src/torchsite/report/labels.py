"""The report of a model whose pictures may have several labels: a single HTML file that needs no network.

result = examine_labels(model, data)
write_labels_report(result, illustrate_labels(model, data, result), "report.html")
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from torchsite.evaluation.illustrate import LabelIllustrations, LabelMaps
from torchsite.files import write_atomically
from torchsite.model.drawing import new_figure, show_heatmap, show_picture
from torchsite.report import charts
from torchsite.report.findings import family
from torchsite.report.format import NOTHING, estimate, number, percent, percent_interval
from torchsite.report.page import Chapter, Table, about, draw_inline, render
from torchsite.results import Result

CHAPTERS = (
    Chapter("data", "Data", "What it was trained and examined on: how many pictures have each label."),
    Chapter("training", "Training", "Step by step, as the run logged it."),
    Chapter("labels", "Label by label", "Each label is a question of its own, answered by yes or no."),
    Chapter(
        "reasons",
        "What it looks at",
        "Each label has a map of its own, which sums to its logit. Red speaks for the label, blue against.",
    ),
    Chapter("mistakes", "Where it goes wrong", "The answers that are furthest on the wrong side, and why."),
)
CAPTIONS: Mapping[str, str] = {
    "counts": "Pictures that have each label.",
    "training": "What training minimised, and what it reached on pictures that it did not train on.",
    "answers": "The share of right answers among pictures that have the label (sensitivity) and among those "
    "that do not (specificity), with 95 % intervals (Wilson).",
    "curves": "Left: hits against false alarms; on the dotted line it knows nothing. Right: how many of "
    "those that it names have the label, against how many of those that have it are named.",
    "examples": "For each label the picture that has it and of which the model is surest: the picture, its "
    "map, a random pose of it, and the map of that.",
    "mistakes": "The picture, what was said, and the map of that label.",
}


def write_labels_report(result: Result, shown: LabelIllustrations, path: Path | str) -> Path:
    """Write the report of an examination as one HTML file; `shown` are its pictures and maps."""
    return write_atomically(Path(path), _document(result, label_figures(result, shown)))


def label_figures(result: Result, shown: LabelIllustrations) -> dict[str, Figure]:
    """Every figure of the report by its name."""
    figures = {"counts": charts.draw_counts(result)}
    if "training" in result.values:
        figures["training"] = charts.draw_training(result.values["training"])
    figures |= {"answers": draw_answers(result), "curves": draw_curves(result)}
    if result.values["examples"] and shown.examples.maps is not None:
        figures["examples"] = draw_examples(result, shown.examples)
    if result.values["mistakes"]:
        figures["mistakes"] = draw_mistakes(result, shown.mistakes)
    return figures


def draw_answers(result: Result) -> Figure:
    """Sensitivity and specificity of each label with their intervals."""
    labels = result.values["labels"]
    figure, (axes,) = charts.new_chart(1, (6.0, max(1.6, 0.9 + 0.3 * len(labels))))
    for shift, (name, colour) in enumerate((("sensitivity", charts.BLUE), ("specificity", charts.ORANGE))):
        for place, found in enumerate(labels.values()):
            value, low, high = (found[name][key] for key in ("value", "low", "high"))
            if value is not None:
                height = place + 0.24 * shift - 0.12
                reach = [[max(value - low, 0)], [max(high - value, 0)]]
                axes.errorbar([value], [height], xerr=reach, fmt="o", ms=4, color=colour)
        axes.plot([], [], "o", color=colour, label=name)
    axes.set_yticks(range(len(labels)), list(labels))
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    axes.legend(frameon=False, fontsize=8)
    return figure


def draw_curves(result: Result) -> Figure:
    """Both curves of each label."""
    figure, (left, right) = charts.new_chart(2, (7.6, 3.4))
    left.plot([0, 1], [0, 1], ":", color=charts.GREY)
    for (name, found), colour in zip(result.values["curves"].items(), _colours(), strict=False):
        if found is not None:
            left.plot(*zip(*found["roc"], strict=True), color=colour, label=name, linewidth=1.5)
            right.plot(*zip(*found["precision_recall"], strict=True), color=colour, linewidth=1.5)
    for axes, across, up in ((left, "false alarms", "hits"), (right, "named of those that have it", "right")):
        axes.set_xlabel(across, fontsize=8)
        axes.set_ylabel(up, fontsize=8)
        axes.set_ylim(-0.02, 1.02)
    left.legend(frameon=False, fontsize=7)
    return figure


def draw_examples(result: Result, shown: LabelMaps) -> Figure:
    """A picture of each label, its map, and both in a pose."""
    entries, names = result.values["examples"][: len(shown.images)], charts.classes(result)
    figure, grid = new_figure(len(entries), 4, 1.1)
    assert shown.maps is not None
    assert shown.moved_maps is not None
    for row, entry, image, heatmap, moved, moved_map in zip(
        grid, entries, shown.images, shown.maps, shown.moved, shown.moved_maps, strict=True
    ):
        show_picture(row[0], image, f"{names[entry['label']]}, {entry['probability']:.0%}")
        show_heatmap(row[1], heatmap, f"Σ {float(heatmap.sum()):.1f}")
        show_picture(row[2], moved, "moved")
        show_heatmap(row[3], moved_map, f"Σ {float(moved_map.sum()):.1f}")
    return figure


def draw_mistakes(result: Result, shown: LabelMaps) -> Figure:
    """The pictures of wrong answers, and the maps of the labels that were wrongly named or missed."""
    entries, names = result.values["mistakes"], charts.classes(result)
    across = 2 if shown.maps is not None else 1
    figure, grid = new_figure(-(-len(entries) // 2), 2 * across, 1.15)
    places = [row[start : start + across] for row in grid for start in (0, across)]
    for number_, (place, entry) in enumerate(zip(places, entries, strict=False)):
        said = "missed" if entry["true"] else "wrongly named"
        title = f"{names[entry['label']]} {said} ({entry['probability']:.0%})"
        show_picture(place[0], shown.images[number_], title)
        if shown.maps is not None:
            show_heatmap(place[1], shown.maps[number_], f"Σ {float(shown.maps[number_].sum()):.1f}")
    return figure


def _document(result: Result, figures: Mapping[str, Figure]) -> str:
    n_labels = len(result.config["model"]["classes"])
    return render(
        "labels.html.j2",
        **about(result, f"{n_labels} labels, of which several may be true of a picture, or none"),
        cards=key_figures(result),
        findings=findings(result),
        figures={name: draw_inline(figure, name, CAPTIONS[name]) for name, figure in figures.items()},
        chapters=CHAPTERS,
        labels=label_table(result),
    )


def key_figures(result: Result) -> list[tuple[str, str, str]]:
    """Name, value and a note for each figure that people ask for first."""
    values = result.values
    right, mean, posed = values["right_answers"], values["mean"], values["posed"]["mean"]
    found = [
        ("right answers", percent(right), percent_interval(right)),
        ("AUROC, mean", number(mean["auroc"], 3), f"in poses {number(posed['auroc'], 3)}"),
        (
            "average precision, mean",
            number(mean["average_precision"], 3),
            f"in poses {number(posed['average_precision'], 3)}",
        ),
    ]
    if "self_consistency" in values:
        scores = values["self_consistency"]
        note = f"raw {number(scores['raw']['value'], 3)}, floor {number(scores['floor']['value'], 3)}"
        found.append(("self-consistency, calibrated", number(scores["calibrated"]["value"], 3), note))
    return found


def findings(result: Result) -> list[str]:
    """The same in sentences, with the label that it knows least of."""
    values = result.values
    sentences = [
        f"It answers {percent(values['right_answers'])} of all questions correctly; a question is whether a "
        f"picture has a label. Poses are drawn from {family(result)}."
    ]
    known = {name: found["auroc"] for name, found in values["labels"].items() if found["auroc"] is not None}
    if known:
        worst = min(known, key=lambda name: known[name])
        sentences.append(f"It knows least of {worst}: AUROC {known[worst]:.3f}; 0.5 is a guess.")
    unknown = [name for name in values["labels"] if name not in known]
    if unknown:
        sentences.append(f"Not measured, since true of all or of no test picture: {', '.join(unknown)}.")
    return sentences + [f"The folder may do harm, {text}." for text in values.get("inspection", ())]


def label_table(result: Result) -> Table:
    """All figures of each label."""
    header = [
        "label",
        "pictures",
        "average precision",
        "AUROC",
        "AUROC in poses",
        "sensitivity",
        "specificity",
    ]
    posed = result.values["posed"]["labels"]
    rows = [_row(name, found, posed[name]) for name, found in result.values["labels"].items()]
    return Table(header, rows)


def _row(name: str, found: Mapping[str, Any], posed: Mapping[str, Any]) -> list[str]:
    numbers = [found["average_precision"], found["auroc"], posed["auroc"]]
    shares = [estimate(found[key], 3) if found[key]["value"] is not None else NOTHING for key in SHARES]
    return [name, str(found["n"]), *(number(value, 3) for value in numbers), *shares]


SHARES: Sequence[str] = ("sensitivity", "specificity")


def _colours() -> list[str]:
    """The usual ones first; more labels than these share them."""
    return [*charts.COLOURS] * 20
