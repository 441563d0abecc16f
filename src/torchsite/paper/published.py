"""Result files in words: the few figures that matter, each with its interval."""

from typing import Any

from torchsite.report.format import HEADLINES, estimate, headline, look_up

__all__ = ["HEADLINES", "figure", "headline"]


def figure(values: Any, *path: str) -> str | None:
    """One figure with its interval, as text; None if the result has none there."""
    return None if (found := look_up(values, *path)) is None else estimate(found)
