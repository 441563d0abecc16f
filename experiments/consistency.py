"""Self-consistency of SITE and of every post-hoc method, on SITE and on the black box (the paper's Table 1).

Claim:    SITE's own explanation follows the picture better than any post-hoc one, on either model,
          calibrated by its floor and centred. The paper claims it for the raw score (0.8860 on CIFAR-10),
          where maps that hardly depend on the picture, such as RISE's, are ahead here.
Command:  torchsite reproduce cifar10_consistency   (or mnist_consistency)
Cost:     the whole test set, each picture in one pose; some hundred for the methods that ask many
          times (`STUDY`), RISE and extremal perturbation, which the paper left out, among them. CIFAR-10
          with the pyramid: 65 minutes of one core, about 35 on two, half of it for these two; each line of
          the result says what it cost. With --quick, a dozen digits.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.registry import Arrays
from experiments.section import (
    CONSISTENCY,
    Pictures,
    Row,
    head,
    notes_on,
    on_model,
    own_first,
    spoken,
)
from experiments.study import Amount, Study, saved, without_values
from experiments.tables import drawn
from torchsite.attribution import METHODS
from torchsite.report.format import markdown_table, method_name, number, score
from torchsite.results import Result

MEASURE = "self_consistency"

# Raw self-consistency on CIFAR-10: on SITE, on the black box.
PAPER: Mapping[str, Mapping[str, tuple[float, float | None]]] = {
    "cifar10": {
        "self_explanation": (0.8860, None),
        "grad_cam": (0.8817, 0.8416),
        "guided_backprop": (0.7830, 0.8168),
        "excitation_backprop": (0.1159, 0.2460),
        "gradient": (0.7174, 0.6926),
        "linear_approximation": (0.8485, 0.4183),
        "deconvnet": (0.8591, 0.7721),
    }
}

STUDY = Study("consistency", {MEASURE: Amount(10_000, passes=45_000)}, tuple(METHODS))


def run(
    recipe: str,
    folder: Path,
    *,
    methods: Sequence[str] | None = None,
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Measure every method on both models of the recipe; finished methods are taken from `folder`."""
    result, _ = STUDY.run(recipe, folder, methods=methods, quick=quick, progress=progress)
    table = [_row(without_values(row), row["values"]) for row in result.values["table"]]
    paper = {method: list(scores) for method, scores in PAPER.get(recipe, {}).items()}
    return saved(result, folder, table=table, first=first(table), paper=paper)


def first(table: Sequence[Row]) -> dict[str, str]:
    """Who is first in each score, among all methods on both models: "method on model"."""
    best = {}
    for name in ("raw", "calibrated", "centred"):
        scores = {
            f"{row['method']} on {row['model']}": value
            for row in _scored(table)
            if (value := row["self_consistency"][name]["value"]) is not None
        }
        if scores:
            best[name] = max(scores, key=lambda who: scores[who])
    return best


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """Table 1 as points with intervals: raw, floor, calibrated and centred, by method, on both models."""
    rows = own_first(_scored(result.values["table"]))
    scores = {(row["model"], row["method"]): row["self_consistency"] for row in rows}
    return {result.name: drawn(scores, CONSISTENCY)}


def section(result: Result, pictures: Pictures) -> str:
    """Ours with intervals, the paper's raw scores beside them, and the chart."""
    table: list[Row] = result.values["table"]
    paper: Mapping[str, Sequence[float | None]] = result.values["paper"]
    rows = [
        [
            method_name(row["method"]),
            on_model(row["model"]),
            *(score(row["self_consistency"], name) for name in CONSISTENCY),
            number(paper.get(row["method"], (None, None))[row["model"] != "site"], 4),
            f"{row['n_images']:,}",
            number(row["ms_per_image"], 2),
        ]
        for row in own_first(_scored(table))
    ]
    header = ["explainer", "", *CONSISTENCY, "paper, raw", "pictures", "ms a picture"]
    leaders = ", ".join(f"{name}: {spoken(who)}" for name, who in result.values["first"].items())
    return (
        head(result, "self-consistency (Table 1)")
        + f"Of the {len(rows)} rows that were measured, first in {leaders}.\n\n"
        + markdown_table(header, rows)
        + notes_on(table)
        + pictures.chart(result.name, "Raw, floor, calibrated and centred self-consistency of all methods")
    )


def _row(row: Row, values: Mapping[str, Any] | None) -> Row:
    scores = {} if values is None else {"self_consistency": {name: values[name] for name in CONSISTENCY}}
    return row | scores


def _scored(table: Sequence[Row]) -> list[Row]:
    return [row for row in table if "self_consistency" in row]
