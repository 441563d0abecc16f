"""The paper's tables for docs/results.md: ours with intervals, the paper's numbers beside them.

Every section is drawn from one result file; those that are not there are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchsite.paper.names import method_name, on_model, own_first, row_name, spoken
from torchsite.paper.published import figure
from torchsite.paper.sheets import (
    examples_section,
    explanations_section,
    failures_section,
    photographs_section,
    sheet_section,
)
from torchsite.paper.text import TITLES, chart, head, markdown_table, notes_on, shown, source
from torchsite.results import Result

SCORES = ("raw", "floor", "calibrated", "centred")


def paper_sections(results: Mapping[str, Result]) -> list[str]:
    """All sections whose results are there, in the order of the paper."""
    return [write(result) for name, result in _in_order(results) for write in [SECTIONS[_kind(name)]]]


def paper_section(result: Result) -> str | None:
    """The section of one result; None if it has none."""
    kind = _kind(result.name)
    return SECTIONS[kind](result) if kind in SECTIONS else None


def paper_accuracy(paper: Mapping[str, float], measure: str) -> str:
    """The paper's SITE (black box) for one measure of the accuracy table, or a dash."""
    if measure == "accuracy, untransformed" and "site" in paper:
        return _both(paper, "")
    if measure == "accuracy, transformed" and "site_transformed" in paper:
        return _both(paper, "_transformed")
    if measure == "self-consistency, raw" and "site_self_consistency" in paper:
        return f"{paper['site_self_consistency']:.4f}"
    return "–"


def consistency_section(result: Result) -> str:
    """Table 1: self-consistency of all methods."""
    table, paper = result.values["table"], result.values["paper"]
    rows = [
        [
            method_name(line["method"]),
            on_model(line["model"]),
            *(figure(line["self_consistency"], score) or "–" for score in SCORES),
            _paper_raw(paper, line),
            f"{line['n_images']:,}",
            shown(line["ms_per_image"], 2),
        ]
        for line in own_first(table)
        if "self_consistency" in line
    ]
    header = ["explainer", "", *SCORES, "paper, raw", "pictures", "ms a picture"]
    first = ", ".join(f"{score}: {spoken(who)}" for score, who in result.values["first"].items())
    return (
        head(result, "self-consistency of all methods (Table 1)")
        + f"First in {first}.\n\n"
        + markdown_table(header, rows)
        + notes_on(table)
        + chart(result, "Raw, floor, calibrated and centred self-consistency of all methods")
    )


def mask_k_section(result: Result) -> str:
    """Figure 5 in numbers: the areas under the curves, and what they gain over a random ranking."""
    table = [line for line in result.values["table"] if "reason" not in line]
    rows = [
        [
            method_name(line["method"]),
            on_model(line["model"]),
            *(figure(line[m], part) or "–" for m in ("accuracy", "log_odds") for part in ("area", "gain")),
            f"{line['n_images']:,}",
        ]
        for line in own_first(table)
    ]
    header = ["ranked by", "", "accuracy, area", "over random", "log-odds, area", "over random", "pictures"]
    return (
        head(result, "mask-k, all methods (Figure 5)")
        + "The least important pixels are blanked, then the picture is moved and classified; areas are mean "
        "heights of the curves over the share of pixels blanked, beside the gain over a random ranking of "
        f"the same pictures. {_largest(table)}\n\n"
        + markdown_table(header, rows)
        + notes_on(result.values["table"])
        + chart(result, "Accuracy and log-odds against the share of pixels blanked, all methods")
    )


def _largest(table: Sequence[Mapping[str, Any]]) -> str:
    """Whose curves are highest; areas of methods that saw fewer pictures are of those pictures."""
    best = {
        name: max(table, key=lambda line: line[measure]["area"]["value"])
        for measure, name in (("accuracy", "accuracy"), ("log_odds", "log-odds"))
    }
    said = (f"{name}: {row_name(line)}" for name, line in best.items())
    return f"The largest areas: {', '.join(said)}."


def baselines_section(result: Result) -> str:
    """Table 2: the accuracy of classical models, SITE and the black box."""
    parts = [
        f"## Classical models beside SITE (Table 2)\n\n{source(result)}\n\n"
        "Each model is trained on pictures as they are, and again on the same pictures in one random pose "
        "each (SITE and the black box: in a new pose every epoch); the paper's numbers are for test pictures "
        "as they are.\n"
    ]
    data = list(dict.fromkeys(line["data"] for line in result.values["table"]))
    for name in data:
        lines = [line for line in result.values["table"] if line["data"] == name]
        paper = result.values["paper"].get(name, {})
        rows = [
            _baseline_row(baseline, lines, paper)
            for baseline in dict.fromkeys(line["baseline"] for line in lines)
        ]
        rows += _rows_beside(result.values["beside"].get(name, {}), paper)
        header = [TITLES.get(name, name), "as they are → as they are", "→ moved", "moved → as they are"]
        parts.append(markdown_table([*header, "→ moved", "paper", "CPU minutes"], rows))
    return "\n".join(parts)


def _baseline_row(baseline: str, lines: Sequence[Mapping[str, Any]], paper: Mapping[str, float]) -> list[str]:
    found = {line["trained_on"]: line for line in lines if line["baseline"] == baseline}
    cells = [
        figure(found[trained_on]["accuracy"], pose) or "–" if trained_on in found else "–"
        for trained_on in ("untransformed", "transformed")
        for pose in ("untransformed", "transformed")
    ]
    minutes = sum(line["cpu_seconds"] for line in found.values()) / 60
    return [method_name(baseline), *cells, shown(paper.get(baseline), 3), f"{minutes:.1f}"]


def _rows_beside(beside: Mapping[str, Any], paper: Mapping[str, float]) -> list[list[str]]:
    names = {"site": "SITE", "black_box": "black box"}
    return [
        [
            names[kind],
            "–",
            "–",
            *(figure(accuracy, pose) or "–" for pose in ("untransformed", "transformed")),
            shown(paper.get(kind), 3),
            "–",
        ]
        for kind, accuracy in beside.items()
    ]


def _paper_raw(paper: Mapping[str, Sequence[float | None]], line: Mapping[str, Any]) -> str:
    scores = paper.get(line["method"], (None, None))
    return shown(scores[line["model"] != "site"], 4)


def _both(paper: Mapping[str, float], ending: str) -> str:
    digits = 2 if ending == "_transformed" else 3
    return f"{paper[f'site{ending}']:.{digits}f} ({paper[f'black_box{ending}']:.{digits}f})"


def _kind(name: str) -> str:
    return next((kind for kind in SECTIONS if name == kind or name.endswith(f"_{kind}")), "")


def _in_order(results: Mapping[str, Result]) -> list[tuple[str, Result]]:
    order = {kind: number for number, kind in enumerate(SECTIONS)}
    ours = [(name, result) for name, result in results.items() if _kind(name)]
    return sorted(ours, key=lambda item: (order[_kind(item[0])], item[0]))


SECTIONS: Mapping[str, Callable[[Result], str]] = {
    "baselines": baselines_section,
    "explanations": explanations_section,
    "photographs": photographs_section,
    "sheet": sheet_section,
    "consistency": consistency_section,
    "mask_k": mask_k_section,
    "examples": examples_section,
    "failures": failures_section,
}
