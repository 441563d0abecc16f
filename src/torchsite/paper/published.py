"""Result files in words: the few figures that matter, each with its interval."""

from collections.abc import Mapping
from typing import Any

from torchsite.results import Result

HEADLINES: Mapping[str, tuple[str, ...]] = {
    "accuracy, untransformed": ("accuracy", "untransformed"),
    "accuracy, transformed": ("accuracy", "transformed"),
    "prediction survives the transform": ("prediction_equivariance", "share"),
    "self-consistency, raw": ("self_consistency", "raw"),
    "self-consistency, floor": ("self_consistency", "floor"),
    "self-consistency, calibrated": ("self_consistency", "calibrated"),
    "self-consistency, centred": ("self_consistency", "centred"),
    "pointing game, transformed, τ = 0": ("pointing_game", "transformed", "tau_0", "score"),
    "prototypes recognised": ("prototype_recognition", "untransformed"),
    "completeness error, largest": ("completeness", "worst"),
}


def headline(result: Result) -> dict[str, str]:
    """The figures of a result that people ask for first; those it does not have are left out."""
    groups = {"": result.values} | {f"{k}: ": v for k, v in result.values.items() if isinstance(v, Mapping)}
    return {
        f"{prefix}{name}": shown
        for prefix, values in groups.items()
        for name, path in HEADLINES.items()
        if (shown := figure(values, *path)) is not None
    }


def figure(values: Any, *path: str) -> str | None:
    """One figure with its interval, as text; None if the result has none there."""
    for step in path:
        if not isinstance(values, Mapping) or step not in values:
            return None
        values = values[step]
    if isinstance(values, Mapping) and "value" in values:
        low, high = values.get("low"), values.get("high")
        interval = "" if low is None or high is None else f"  [{low:.4f}, {high:.4f}]"
        return "–" if values["value"] is None else f"{values['value']:.4f}{interval}"
    return f"{values:.2g}" if isinstance(values, int | float) else None
