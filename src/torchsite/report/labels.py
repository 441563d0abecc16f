"""Figures, tables and findings of a model for several labels a picture."""

from itertools import cycle

from matplotlib.figure import Figure

from torchsite.evaluation.illustrate import LabelIllustrations, LabelMaps
from torchsite.model.drawing import new_figure, show_heatmap, show_picture
from torchsite.report import charts
from torchsite.report.findings import family
from torchsite.report.format import estimate, number, percent, percent_interval
from torchsite.report.page import Table
from torchsite.results import Result

SHARES = ("sensitivity", "specificity")


def label_figures(result: Result, shown: LabelIllustrations) -> dict[str, Figure]:
    """The figures that only such models have, by their names."""
    values = result.values
    answers = {share: [found[share] for found in values["labels"].values()] for share in SHARES}
    figures = {
        "answers": charts.draw_intervals(list(values["labels"]), answers, "share of right answers"),
        "curves": draw_curves(result),
    }
    if values["examples"] and shown.examples.maps is not None:
        figures["examples"] = draw_examples(result, shown.examples)
    if values["mistakes"]:
        figures["mistakes"] = draw_mistakes(result, shown.mistakes)
    return figures


def draw_curves(result: Result) -> Figure:
    """Both curves of each label."""
    figure, (left, right) = charts.new_chart(2, (7.6, 3.4))
    left.plot([0, 1], [0, 1], ":", color=charts.GREY)
    for (name, found), colour in zip(result.values["curves"].items(), cycle(charts.COLOURS), strict=False):
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
    """The findings in sentences, with the weakest label."""
    values = result.values
    sentences = [
        f"It answers {percent(values['right_answers'])} of all questions correctly; a question is whether a "
        f"picture has a label. Poses are drawn from {family(result)}."
    ]
    known = {name: found["auroc"] for name, found in values["labels"].items() if found["auroc"] is not None}
    if known:
        worst = min(known, key=lambda name: known[name])
        sentences.append(f"Its weakest label is {worst}: AUROC {known[worst]:.3f}; 0.5 is a guess.")
    unknown = [name for name in values["labels"] if name not in known]
    if unknown:
        sentences.append(f"Not measured, since true of all or of no test picture: {', '.join(unknown)}.")
    return sentences


def tables(result: Result) -> dict[str, Table]:
    """All figures of each label."""
    header = ["label", "pictures", "average precision", "AUROC", "AUROC in poses", *SHARES]
    posed = result.values["posed"]["labels"]
    rows = [
        [
            name,
            str(found["n"]),
            *(
                number(value, 3)
                for value in (found["average_precision"], found["auroc"], posed[name]["auroc"])
            ),
            *(estimate(found[share], 3) for share in SHARES),
        ]
        for name, found in result.values["labels"].items()
    ]
    return {"table_of_labels": Table(header, rows)}
