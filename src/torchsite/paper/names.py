"""How methods and models are called in the paper's tables and figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from torchsite.report.format import method_name

__all__ = ["OWN", "PUBLIC", "method_name", "on_model", "own_first", "row_name", "spoken"]

# Whose pictures the documentation may show.
PUBLIC = ("mnist_", "targets", "generators", "cifar10_photographs", "bam_photograph")

OWN = ("self_explanation", "relative_explanation", "plain_explanation")


def on_model(kind: str) -> str:
    """Which of the two models was explained."""
    return "on SITE" if kind == "site" else "on the black box"


def row_name(line: Mapping[str, Any]) -> str:
    """What a line of a table is about: a method on a model."""
    return f"{method_name(line['method'])} {on_model(line['model'])}"


def spoken(who: str) -> str:
    """The same for results that name a line by "method on model"."""
    method, _, model = who.partition(" on ")
    return row_name({"method": method, "model": model})


def own_first(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The lines of a table in their order, the model's own explanations before all others."""
    return sorted(lines, key=lambda line: OWN.index(line["method"]) if line["method"] in OWN else len(OWN))
