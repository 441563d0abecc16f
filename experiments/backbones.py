"""Any backbone: networks of several families as feature extractors, on two sets of photographs.

Claim:    SITE is not bound to a network of ours. With the settings of `torchsite train FOLDER`, the same
          pictures and the same number of steps, each backbone gives a SITE model and a plain network beside
          it; the table says what the explanation costs in accuracy, and whether the maps are true.
Command:  torchsite reproduce backbones
Cost:     `backbone_steps` trains two models of each backbone on each set: 25 minutes of one core. One cell
          alone: `measure(folder, backbones=["EfficientNet-Lite0"], sets=["food10"], kinds=["site"])` there.
          With --quick, painted pictures and two tiny networks. Networks of timm and torchvision need the
          extra `torchsite[timm]`; where it is missing their rows say so, and the others are measured.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.backbone_steps import (
    N_PROBED,
    backbones_of,
    budget_of,
    recipe_of,
    sets_of,
    steps,
)
from experiments.cache import save_result
from experiments.models import KINDS
from experiments.registry import Arrays
from experiments.section import Pictures, source
from torchsite.configs import to_mapping
from torchsite.report.format import NOTHING, bounds, estimate, look_up, markdown_table
from torchsite.results import Result

# The columns of the table: what each is called, of which model, and where its score stands.
COLUMNS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "accuracy, SITE": ("site", ("accuracy", "untransformed")),
    "black box": ("black_box", ("accuracy", "untransformed")),
    "posed, SITE": ("site", ("accuracy", "transformed")),
    "posed, black box": ("black_box", ("accuracy", "transformed")),
    "patch deletion": ("site", ("patch_deletion", "correlation")),
    "its floor": ("site", ("patch_deletion", "floor")),
    "consistency, corners black": ("site", ("frame_control", "black", "calibrated")),
    "corners filled": ("site", ("frame_control", "filled", "calibrated")),
}
SHOWN = ("accuracy, SITE", "patch deletion", "corners filled")
BESIDE = {"accuracy, SITE": "black box", "patch deletion": "its floor"}


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train and measure what is not in `folder` yet, and gather the table."""
    started = time.monotonic()
    table = list(steps(folder, quick=quick, progress=progress))
    config = {
        **budget_of(quick),
        "n_probed": N_PROBED,
        "recipe": to_mapping(recipe_of(next(iter(backbones_of(quick).values())), "site", quick)),
        "sets": dict(sets_of(quick)),
        "weights": {
            f"{row['set']}/{row['backbone']}/{row['kind']}": row["weights"]
            for row in table
            if "weights" in row
        },
        "quick": quick,
    }
    trained = sum(row.get("training_seconds", 0.0) for row in table)
    seconds = max(trained, time.monotonic() - started)
    return save_result(Result("backbones", {"table": table}, config, 0, seconds), folder)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """Accuracy beside the black box's, patch deletion beside its floor, consistency: a row for each set."""
    sets = list(result.config["sets"])
    figure = Figure(figsize=(3.2 * len(SHOWN) + 1.8, 2.6 * len(sets)), layout="constrained")
    grid = figure.subplots(len(sets), len(SHOWN), squeeze=False, sharey=True)
    for line, name in zip(grid, sets, strict=True):
        rows = _by_backbone(result, name)
        for axes, column in zip(line, SHOWN, strict=True):
            _draw(axes, rows, column)
        line[0].set_yticks(range(len(rows)), list(rows), fontsize=8)
        line[0].set_ylim(len(rows) - 0.5, -0.5)
        line[0].set_ylabel(name)
    return {result.name: figure}


def section(result: Result, pictures: Pictures) -> str:
    """A table for each set."""
    config = result.config
    tables = "\n".join(_table(result, name, title) for name, title in config["sets"].items())
    family = config["recipe"]["training"]["family"]
    return (
        "## Any backbone\n\n"
        f"{source(result)}\n\n"
        f"{config['n_train']:,} pictures of {config['size']} pixels, {config['epochs']} epochs in batches of "
        f"{config['batch_size']}, with the terms that `torchsite train FOLDER` uses, in poses of "
        f"±{family['max_rotation']:g}° and ±{family['max_shift']:.0%}; the black box sees the same views. "
        f"Accuracies are of {config['n_test']:,} test pictures, measures of maps of {config['n_probed']}. "
        "ImageNet's weights were at hand for the EfficientNets alone: the others begin with random ones, and "
        "so few pictures and steps teach them little. Compare SITE with the black box of its row, and rows "
        "of the same start; what a network can do with weights of its library is not shown. Minutes are of "
        "one core, SITE and black box; PMAC are 10¹⁵ multiply-accumulates of SITE's training.\n\n"
        + tables
        + _reasons(result)
        + pictures.chart(result.name, "Accuracy, patch deletion and consistency by backbone")
    )


def _by_backbone(result: Result, name: str) -> dict[str, dict[str, Any]]:
    """The rows of a set: each backbone's two models."""
    found: dict[str, dict[str, Any]] = {}
    for row in result.values["table"]:
        if row["set"] == name:
            found.setdefault(row["backbone"], {})[row["kind"]] = row
    return found


def _table(result: Result, name: str, title: str) -> str:
    rows = []
    for backbone, kinds in _by_backbone(result, name).items():
        site, other = (kinds.get(kind, {}) for kind in KINDS)
        scores = [_score(kinds, column) for column in COLUMNS]
        minutes = " + ".join(_minutes(row) for row in (site, other))
        pmac = NOTHING if "pmac" not in site else f"{site['pmac']:.4f}"
        rows.append([backbone, site.get("starts_from", NOTHING), *scores, minutes, pmac])
    return f"{title}\n\n" + markdown_table(["", "starts from", *COLUMNS, "minutes", "PMAC"], rows, left=2)


def _score(kinds: Mapping[str, Any], column: str) -> str:
    kind, path = COLUMNS[column]
    found = look_up(kinds, kind, "scores", *path)
    return estimate(found, 3, interval="accuracy" in path or "correlation" in path)


def _minutes(row: Mapping[str, Any]) -> str:
    return f"{row['training_seconds'] / 60:.1f}" if "training_seconds" in row else NOTHING


def _reasons(result: Result) -> str:
    """What could not be built, and why."""
    found = {row["backbone"]: row["reason"] for row in result.values["table"] if "reason" in row}
    return "".join(f"\n- {name} was left out: {reason}" for name, reason in found.items()) + "\n"


def _draw(axes: Axes, rows: Mapping[str, Mapping[str, Any]], column: str) -> None:
    """Points with their intervals; what stands beside them is hollow."""
    for place, kinds in enumerate(rows.values()):
        _point(axes, kinds, column, place, "o")
        if column in BESIDE:
            _point(axes, kinds, BESIDE[column], place, "D")
    beside = f" (◇ {BESIDE[column]})" if column in BESIDE else ""
    axes.set_title(column + beside, fontsize=9)
    axes.grid(axis="x", alpha=0.3)


def _point(axes: Axes, kinds: Mapping[str, Any], column: str, place: int, mark: str) -> None:
    kind, path = COLUMNS[column]
    value, low, high = bounds(look_up(kinds, kind, "scores", *path))
    if value is None:
        return
    reach: Sequence[Sequence[float]] | None = None
    if mark == "o" and low is not None and high is not None:
        reach = [[max(value - low, 0)], [max(high - value, 0)]]
    face = "C0" if mark == "o" else "none"
    axes.errorbar([value], [place], xerr=reach, fmt=mark, ms=4, color="C0", markerfacecolor=face)
