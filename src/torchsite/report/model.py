"""The report of one model: a single HTML file that needs no network, and its figures for notebooks.

result = examine(model, data, training=training, log=run / "logs" / "metrics.csv")
shown = illustrate(model, data, result)
write_report(result, shown, "report.html")
report_figures(result, shown)["confusion"].savefig("confusion.svg")

Titles and captions are in `templates/classes.yaml` and `templates/labels.yaml`.
"""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from torchsite.evaluation.audit import Audit, strongest_first
from torchsite.evaluation.illustrate import Illustrations, LabelIllustrations
from torchsite.files import write_atomically
from torchsite.report import charts, findings, sheets
from torchsite.report.audit import draw_groups
from torchsite.report.comparison import draw, notes, to_rows
from torchsite.report.format import estimate, number
from torchsite.report.page import Table, prose, render
from torchsite.results import Result

N_GROUPS = 6  # of an audit
SCORES = ("raw", "floor", "calibrated", "centred")


def write_report(
    result: Result,
    shown: Illustrations | LabelIllustrations,
    path: Path | str,
    *,
    audit: Audit | None = None,
) -> Path:
    """Write the report of an examination as one HTML file; `shown` are its pictures and maps.

    Of an audit its sentences and strongest groups are shown.
    """
    figures = report_figures(result, shown)
    n_classes = len(result.config["model"]["classes"])
    if "labels" in result.values:
        answers = f"{n_classes} labels, of which several may be true of a picture, or none"
        text, tables = prose("labels"), label_tables(result)
    else:
        poses = f"{result.config['n_transforms']} poses each ({findings.family(result)})"
        answers = f"{n_classes} classes, in {poses}"
        text, tables = class_prose(result), class_tables(result)
    cards, said = findings.key_figures(result), findings.findings(result)
    if audit is not None:
        figures["audit"] = draw_groups(audit, strongest_first(audit.groups)[:N_GROUPS])
        said = [*said, *audit.verdicts]
    page = render(result, text, figures, tables, cards, said, answers)
    return write_atomically(Path(path), page)


def report_figures(result: Result, shown: Illustrations | LabelIllustrations) -> dict[str, Figure]:
    """Every figure of the report by its name, as far as the examination has what it shows."""
    values = result.values
    figures = {"counts": charts.draw_counts(result)}
    if "training" in values:
        figures["training"] = charts.draw_training(values["training"])
    if isinstance(shown, LabelIllustrations):
        figures |= {"answers": charts.draw_labels(result), "curves": charts.draw_curves(result)}
        if values["examples"] and shown.examples.maps is not None:
            figures["examples"] = sheets.draw_label_examples(result, shown.examples)
        if values["mistakes"]:
            figures["mistakes"] = sheets.draw_label_mistakes(result, shown.mistakes)
        return figures
    figures |= {
        "samples": sheets.draw_samples(shown, result),
        "per_class": charts.draw_per_class(result),
        "confusion": charts.draw_confusion(result),
        "confusion_posed": charts.draw_confusion(result, "transformed"),
        "calibration": charts.draw_calibration(result),
        "turning": sheets.draw_turning(shown),
        "moving": sheets.draw_moving(shown, result),
    }
    if values.get("self_consistency", {}).get("curves"):
        figures["consistency"] = charts.draw_consistency(result)
    if shown.classes is not None:
        figures["classes"] = sheets.draw_classes(shown)
    if "comparison" in values:
        figures["methods"] = charts.draw_methods(result)
        figures["comparison"] = draw(charts.comparison_of(result))
    for pose, name in (("untransformed", "mistakes"), ("transformed", "mistakes_posed")):
        if pose in shown.mistakes:
            figures[name] = sheets.draw_mistakes(shown, result, pose)
    return figures


def class_prose(result: Result) -> dict[str, Any]:
    """Chapters and captions, with the notes for this kind of model."""
    text, model = prose("classes"), result.config["model"]
    captions, notes_ = text["captions"], text["notes"]
    pixels, site = model["feature_extractor"] == "identity", model["kind"] == "site"
    if not pixels:
        captions["classes"] += f" {notes_['nearest']}"
    if site:
        captions["mistakes"] += f" {notes_['why']}"
        captions["mistakes_posed"] += f" {notes_['why']}"
    if "comparison" in result.values:
        captions["methods"] += f" Compared on {result.config['n_compared']:,} of the pictures."
        captions["methods"] += f" {notes_['pixels']}" if pixels and site else ""
    return text


def class_tables(result: Result) -> dict[str, Table]:
    """The tables of a model that gives each picture one class, by name."""
    values = result.values
    answers = zip(*(values["answers"][pose]["per_class"] for pose in charts.POSES), strict=True)
    rows = [
        [name, str(upright["n"]), *(estimate(found["accuracy"], 3) for found in (upright, posed))]
        for name, (upright, posed) in zip(charts.classes(result), answers, strict=True)
    ]
    header = ["class", "pictures", "accuracy", "accuracy in poses"]
    tables = {"table_of_classes": Table(header, rows, folded="numbers by class")}
    found = {"corners: black": values["self_consistency"]} if "self_consistency" in values else {}
    if "frame_control" in values:
        found |= {f"corners: {name}": four for name, four in values["frame_control"]["fills"].items()}
        found["grey pictures, corners: black"] = values["frame_control"]["content_free"]
    patches = values.get("patch_deletion", {}).get("fills", {})
    patches = {f"patches hidden by: {name}": scores for name, scores in patches.items()}
    for name, scores, keys in (
        ("consistency", found, SCORES),
        ("patches", patches, ("correlation", "floor")),
    ):
        if scores:
            rows = [[place, *(estimate(row[key], 3) for key in keys)] for place, row in scores.items()]
            tables[f"table_of_{name}"] = Table(["", *keys], rows)
    if "comparison" in values:
        comparison = charts.comparison_of(result)
        tables["table_of_methods"] = Table(*to_rows(comparison), notes=notes(comparison))
    return tables


def label_tables(result: Result) -> dict[str, Table]:
    """All figures of each label."""
    header = ["label", "pictures", "average precision", "AUROC", "AUROC in poses", *charts.SHARES]
    posed = result.values["posed"]["labels"]
    rows = [
        [
            name,
            str(found["n"]),
            *(
                number(value, 3)
                for value in (found["average_precision"], found["auroc"], posed[name]["auroc"])
            ),
            *(estimate(found[share], 3) for share in charts.SHARES),
        ]
        for name, found in result.values["labels"].items()
    ]
    return {"table_of_labels": Table(header, rows)}
