"""The paper's tables for docs/results.md: ours with intervals, the paper's numbers beside them.

Every section is drawn from one result file; those that are not there are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchsite.report.paper_names import method_name, on_model
from torchsite.report.results import figure
from torchsite.results import Result

TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "mnist_sample": "embedded digits"}
SCORES = ("raw", "floor", "calibrated", "centred")


def paper_sections(results: Mapping[str, Result]) -> list[str]:
    """All sections whose results are there, in the order of the paper."""
    return [write(result) for name, result in _in_order(results) for write in [SECTIONS[_kind(name)]]]


def paper_section(result: Result) -> str | None:
    """The section of one result; None if it has none."""
    kind = _kind(result.name)
    return SECTIONS[kind](result) if kind in SECTIONS else None


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, the first column to the left, figures to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def paper_accuracy(paper: Mapping[str, float], measure: str) -> str:
    """The paper's SITE (black box) for one measure of the accuracy table, or a dash."""
    if measure == "accuracy, untransformed" and "site" in paper:
        cnn = f"; CNN {_both(paper, '_cnn')}" if "site_cnn" in paper else ""
        return _both(paper, "") + cnn
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
            _shown(line["ms_per_image"], 2),
        ]
        for line in table
        if "self_consistency" in line
    ]
    header = ["explainer", "", *SCORES, "paper, raw", "pictures", "ms a picture"]
    first = ", ".join(f"{score}: {_spoken(who)}" for score, who in result.values["first"].items())
    return (
        _head(result, "self-consistency of all methods (Table 1)")
        + f"First in {first}.\n\n"
        + markdown_table(header, rows)
        + _notes(table)
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
        for line in table
    ]
    header = ["ranked by", "", "accuracy, area", "over random", "log-odds, area", "over random", "pictures"]
    return (
        _head(result, "mask-k, all methods (Figure 5)")
        + "The least important pixels are blanked, then the picture is moved and classified; areas are mean "
        "heights of the curves over the share of pixels blanked, beside the gain over a random ranking of "
        "the same pictures.\n\n" + markdown_table(header, rows) + _notes(result.values["table"])
    )


def baselines_section(result: Result) -> str:
    """Table 2: the accuracy of classical models, SITE and the black box."""
    parts = [
        f"## Classical models beside SITE (Table 2)\n\n{_source(result)}\n\n"
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
        rows += _rows_beside(result.values["beside"].get(name, {}))
        header = [TITLES.get(name, name), "as they are → as they are", "→ moved", "moved → as they are"]
        parts.append(markdown_table([*header, "→ moved", "paper", "CPU minutes"], rows))
    return "\n".join(parts)


def failures_section(result: Result) -> str:
    """The commonest mistakes, and the ones that were made with the greatest confidence."""
    values = result.values
    common = [[c["class"], c["predicted"], str(c["n"])] for c in values["confusions"]]
    shown = [
        [
            str(note["row"]),
            note["class"],
            note["predicted"],
            f"{note['probability']:.3f}",
            f"{note['logit of the class'] - note['logit of the predicted']:.2f}",
        ]
        for note in values["pictures"]
    ]
    return (
        _head(result, "failure cases")
        + f"{values['n_wrong']:,} of {values['n_images']:,} pictures are classified wrongly. The commonest "
        "mistakes:\n\n"
        + markdown_table(["class", "seen as", "pictures"], common)
        + "\nThe most confident ones, no two of one class; the difference of the logits is the sum of "
        "`why(class, seen as)`:\n\n"
        + markdown_table(["picture", "class", "seen as", "probability", "difference"], shown)
    )


def _baseline_row(baseline: str, lines: Sequence[Mapping[str, Any]], paper: Mapping[str, float]) -> list[str]:
    found = {line["trained_on"]: line for line in lines if line["baseline"] == baseline}
    cells = [
        figure(found[trained_on]["accuracy"], pose) or "–" if trained_on in found else "–"
        for trained_on in ("untransformed", "transformed")
        for pose in ("untransformed", "transformed")
    ]
    minutes = sum(line["cpu_seconds"] for line in found.values()) / 60
    return [method_name(baseline), *cells, _shown(paper.get(baseline), 3), f"{minutes:.1f}"]


def _rows_beside(beside: Mapping[str, Any]) -> list[list[str]]:
    names = {"site": "SITE", "black_box": "black box"}
    return [
        [
            names[kind],
            "–",
            "–",
            *(figure(accuracy, pose) or "–" for pose in ("untransformed", "transformed")),
            "–",
            "–",
        ]
        for kind, accuracy in beside.items()
    ]


def _head(result: Result, title: str) -> str:
    return (
        f"## {TITLES.get(result.config['recipe'], result.config['recipe'])}: {title}\n\n{_source(result)}\n\n"
    )


def _source(result: Result) -> str:
    return f"`torchsite reproduce {result.name}` → `results/{result.name}.json` ({result.time})"


def _notes(table: Sequence[Mapping[str, Any]]) -> str:
    """What does not apply and why, and which layers and options were not the usual ones."""
    refused = [
        f"- {method_name(line['method'])} {on_model(line['model'])} is not defined: {line['reason']}"
        for line in table
        if "reason" in line
    ]
    chosen = [
        f"- {method_name(line['method'])} {on_model(line['model'])}: "
        + ", ".join(f"{key} = {value}" for key, value in line["options"].items())
        for line in table
        if line["options"] and "reason" not in line
    ]
    return "\n".join(["", *refused, *chosen]) + "\n" if refused or chosen else ""


def _paper_raw(paper: Mapping[str, Sequence[float | None]], line: Mapping[str, Any]) -> str:
    scores = paper.get(line["method"], (None, None))
    return _shown(scores[line["model"] != "site"], 4)


def _spoken(who: str) -> str:
    method, _, kind = who.partition(" on ")
    return f"{method_name(method)} {on_model(kind)}"


def _both(paper: Mapping[str, float], ending: str) -> str:
    digits = 2 if ending == "_transformed" else 3
    return f"{paper[f'site{ending}']:.{digits}f} ({paper[f'black_box{ending}']:.{digits}f})"


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _kind(name: str) -> str:
    return next((kind for kind in SECTIONS if name == kind or name.endswith(f"_{kind}")), "")


def _in_order(results: Mapping[str, Result]) -> list[tuple[str, Result]]:
    order = {kind: number for number, kind in enumerate(SECTIONS)}
    ours = [(name, result) for name, result in results.items() if _kind(name)]
    return sorted(ours, key=lambda item: (order[_kind(item[0])], item[0]))


SECTIONS: Mapping[str, Callable[[Result], str]] = {
    "baselines": baselines_section,
    "consistency": consistency_section,
    "mask_k": mask_k_section,
    "failures": failures_section,
}
