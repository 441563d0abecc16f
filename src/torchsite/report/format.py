"""How numbers, names and tables are written: the same everywhere, on pages, in documents and on the terminal.

    estimate({"value": 0.9, "low": 0.88, "high": 0.92})    "0.9000  [0.8800, 0.9200]"
    method_name("grad_cam")                                "Grad-CAM"

An estimate is what a result file holds of one: a mapping of value, low and high, of which each may be None.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from torchsite.metrics import METRICS
from torchsite.metrics.estimate import look_up as look_up
from torchsite.metrics.estimate import score_paths as score_paths
from torchsite.results import Result

NOTHING = "–"

METHOD_NAMES: Mapping[str, str] = {
    "self_explanation": "SITE itself",
    "relative_explanation": "SITE, relative maps",
    "plain_explanation": "SITE, plain maps",
    "grad_cam": "Grad-CAM",
    "score_cam": "Score-CAM",
    "guided_backprop": "guided BP",
    "excitation_backprop": "excitation BP",
    "contrastive_excitation_backprop": "contrastive EBP",
    "deconvnet": "DeConvNet",
    "rise": "RISE",
    "linear_approximation": "linear approx.",
    "extremal_perturbation": "extremal pert.",
    "integrated_gradients": "integrated grad.",
    "smooth_grad": "SmoothGrad",
}

# The main scores, by their names in tables, and their places in a result.
HEADLINES: Mapping[str, tuple[str, ...]] = {
    "accuracy, untransformed": ("accuracy", "untransformed"),
    "accuracy, transformed": ("accuracy", "transformed"),
    "prediction survives the transform": ("prediction_equivariance", "share"),
    "self-consistency, raw": ("self_consistency", "raw"),
    "self-consistency, floor": ("self_consistency", "floor"),
    "self-consistency, calibrated": ("self_consistency", "calibrated"),
    "self-consistency, centred": ("self_consistency", "centred"),
    "self-consistency, corners filled, calibrated": ("frame_control", "filled", "calibrated"),
    "evidence without content / with": ("frame_control", "evidence", "ratio"),
    "patch deletion, rank correlation": ("patch_deletion", "correlation"),
    "patch deletion, floor": ("patch_deletion", "floor"),
    "pointing game, transformed, τ = 0": ("pointing_game", "transformed", "tau_0", "score"),
    "prototypes recognised": ("prototype_recognition", "untransformed"),
    "completeness error, largest": ("completeness", "worst"),
}


def number(value: float | None, digits: int = 4) -> str:
    """A number, or a dash."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def estimate(found: Any, digits: int = 4, *, interval: bool = True) -> str:
    """A value with its interval, as far as they are there; a bare number in two digits; else a dash."""
    value, low, high = bounds(found)
    if value is None:
        return NOTHING
    if not isinstance(found, Mapping):
        return f"{value:.2g}"
    if not interval or low is None or high is None:
        return number(value, digits)
    return f"{number(value, digits)}  [{number(low, digits)}, {number(high, digits)}]"


def bounds(found: Any) -> tuple[float | None, float | None, float | None]:
    """Value, low and high of an estimate; a bare number has no interval."""
    if isinstance(found, Mapping):
        return found.get("value"), found.get("low"), found.get("high")
    return (found if isinstance(found, int | float) else None), None, None


def score(values: Any, *path: str, digits: int = 4) -> str:
    """The estimate at a place within the values of a result, as text; a dash if there is none."""
    return estimate(look_up(values, *path), digits)


def score_rows(names: Mapping[str, tuple[str, ...]], models: Sequence[Any]) -> list[list[str]]:
    """One row for each named score that any of the models has, one column for each model."""
    rows = [[name, *(score(values, *path) for values in models)] for name, path in names.items()]
    return [row for row in rows if any(text != NOTHING for text in row[1:])]


def percent(found: Mapping[str, float | None]) -> str:
    """The value of an estimate as a share of a hundred."""
    return NOTHING if found["value"] is None else f"{found['value']:.1%}"


def percent_interval(found: Mapping[str, float | None]) -> str:
    """The interval of an estimate in words; empty if there is none."""
    low, high = found["low"], found["high"]
    return "" if low is None or high is None else f"{low:.1%} to {high:.1%}"


def headline(result: Result) -> dict[str, str]:
    """The main scores of a result, with their intervals, by name.

    Those it does not have are left out. A measure that has no names in HEADLINES is shown by its own.
    """
    groups = {"": result.values} | {f"{k}: ": v for k, v in result.values.items() if isinstance(v, Mapping)}
    return {
        f"{prefix}{name}": estimate(found)
        for prefix, values in groups.items()
        for name, path in {**HEADLINES, **_other_headlines(values)}.items()
        if isinstance(found := look_up(values, *path), Mapping | int | float)
    }


def _other_headlines(values: Any) -> dict[str, tuple[str, ...]]:
    known = {path[0] for path in HEADLINES.values()}
    return {
        f"{words(name)}, {score_name(path)}": (name, *path)
        for name, measure in METRICS.items()
        if name not in known
        for pattern in measure.headline
        for path in score_paths(look_up(values, name), pattern)
    }


def score_name(path: Sequence[str]) -> str:
    """The path of a score in words, without the word `fills`."""
    filled = ("", *path)  # the name of a filling may be the text of a value, which is left as it is
    steps = zip(filled, path, strict=False)
    return " ".join(step if before == "fills" else words(step) for before, step in steps if step != "fills")


def method_name(method: str) -> str:
    """A method's name as people write it."""
    return METHOD_NAMES.get(method, words(method))


def words(name: str) -> str:
    """A name of the code in words: "transformed.tau_0.score" is "transformed τ0 score"."""
    return name.replace("_", " ").replace(".", " ").replace("tau ", "τ")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """A Markdown table; the first `left` columns are aligned left, the others right."""
    ruler = [*["---"] * left, *["---:"] * (len(header) - left)]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in [header, ruler, *rows]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
