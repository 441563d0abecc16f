"""The report of one model: a single HTML file that needs no network, and its figures for notebooks.

result = examine(model, data, training=training, log=run / "logs" / "metrics.csv")
shown = illustrate(model, data, result)
write_model_report(result, shown, "report.html")
model_figures(result, shown)["confusion"].savefig("confusion.svg")
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from torchsite.evaluation.illustrate import Illustrations
from torchsite.evaluation.training_log import read_log
from torchsite.files import write_atomically
from torchsite.model.drawing import png
from torchsite.report import charts, sheets
from torchsite.report.captions import SECTIONS, caption, methods_note
from torchsite.report.comparison import draw, notes, to_rows
from torchsite.report.findings import family, findings, key_figures
from torchsite.report.format import estimate
from torchsite.report.page import Chapter, Table, about, draw_inline, render
from torchsite.results import Result


def write_model_report(
    result: Result,
    shown: Illustrations,
    path: Path | str,
    *,
    training_log: Path | None = None,
    figures: Mapping[str, Figure] | None = None,
) -> Path:
    """Write the report of an examination as one HTML file; `shown` are its pictures and maps.

    `training_log` is the run's `metrics.csv`, if `examine` was not given it already; `figures` those of
    `model_figures`, if they have been drawn already.
    """
    result = _with_training(result, training_log)
    figures = model_figures(result, shown) if figures is None else figures
    return write_atomically(Path(path), _document(result, figures))


def model_figures(result: Result, shown: Illustrations) -> dict[str, Figure]:
    """Every figure of the report by its name, as far as the examination has what it shows."""
    values = result.values
    figures = {"counts": charts.draw_counts(result), "samples": sheets.draw_samples(shown, result)}
    if "training" in values:
        figures["training"] = charts.draw_training(values["training"])
    figures |= {
        "per_class": charts.draw_per_class(result),
        "confusion": charts.draw_confusion(result),
        "confusion_posed": charts.draw_confusion(result, "transformed"),
        "calibration": charts.draw_calibration(result),
    }
    if values.get("self_consistency", {}).get("curves"):
        figures["consistency"] = charts.draw_consistency(result)
    figures |= {
        "turning": sheets.draw_turning(shown),
        "moving": sheets.draw_moving(shown, result),
    }
    if shown.classes is not None:
        figures["classes"] = sheets.draw_classes(shown)
    if "comparison" in values:
        figures["methods"] = charts.draw_methods(result)
        figures["comparison"] = draw(charts.comparison_of(result))
    for pose, name in (("untransformed", "mistakes"), ("transformed", "mistakes_posed")):
        if pose in shown.mistakes:
            figures[name] = sheets.draw_mistakes(shown, result, pose)
    return figures


def save_figures(figures: Mapping[str, Figure], folder: Path | str) -> list[Path]:
    """Write each figure as PNG and SVG."""
    written = []
    for name, figure in figures.items():
        written.append(write_atomically(Path(folder) / f"{name}.png", png(figure)))
        written.append(write_atomically(Path(folder) / f"{name}.svg", partial(figure.savefig, format="svg")))
    return written


def _document(result: Result, figures: Mapping[str, Figure]) -> str:
    n_classes, n_poses = len(result.config["model"]["classes"]), result.config["n_transforms"]
    found = charts.comparison_of(result) if "comparison" in result.values else None
    return render(
        "report.html.j2",
        **about(result, f"{n_classes} classes", f", {n_poses} poses each ({family(result)})"),
        cards=key_figures(result),
        findings=findings(result),
        figures={name: draw_inline(figure, name, caption(name, result)) for name, figure in figures.items()},
        chapters=_chapters(result),
        classes=_class_table(result),
        scores=_score_table(result),
        corners=_corner_table(result),
        patches=_patch_table(result),
        comparison=None if found is None else Table(*to_rows(found)),
        reasons=[] if found is None else notes(found),
    )


def _chapters(result: Result) -> list[Chapter]:
    """What may be shown; the page leaves out those that have nothing to show."""
    notes = {"methods": methods_note(result)} if "comparison" in result.values else {}
    return [
        Chapter(name, title, f"{text} {notes.get(name, '')}".strip())
        for name, (title, text) in SECTIONS.items()
    ]


def _class_table(result: Result) -> Table:
    upright, posed = (result.values["answers"][pose]["per_class"] for pose in charts.POSES)
    rows = [
        [name, str(a["n"]), estimate(a["accuracy"], 3), estimate(b["accuracy"], 3)]
        for name, a, b in zip(charts.classes(result), upright, posed, strict=True)
    ]
    return Table(["class", "pictures", "accuracy", "accuracy in poses"], rows)


def _score_table(result: Result) -> Table | None:
    if "self_consistency" not in result.values:
        return None
    names = ("raw", "floor", "calibrated", "centred")
    return Table(names, [[estimate(result.values["self_consistency"][name], 3) for name in names]])


def _corner_table(result: Result) -> Table | None:
    """Consistency under each filling of the corners, and of pictures without content."""
    if "frame_control" not in result.values:
        return None
    control, names = result.values["frame_control"], ("raw", "floor", "calibrated", "centred")
    found = {f"corners: {name}": four for name, four in control["fills"].items()}
    found |= {"grey pictures, corners: black": control["content_free"]}
    rows = [[name, *(estimate(four[key], 3) for key in names)] for name, four in found.items()]
    return Table(["", *names], rows)


def _patch_table(result: Result) -> Table | None:
    """Patch deletion under each filling."""
    if "patch_deletion" not in result.values:
        return None
    rows = [
        [f"patches hidden by: {name}", estimate(found["correlation"], 3), estimate(found["floor"], 3)]
        for name, found in result.values["patch_deletion"]["fills"].items()
    ]
    return Table(["", "rank correlation", "floor"], rows)


def _with_training(result: Result, training_log: Path | None) -> Result:
    if training_log is None or "training" in result.values:
        return result
    return replace(result, values={**result.values, "training": read_log(training_log)})
