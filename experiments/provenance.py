"""Of which weights a result is: the one check that stands before every number on a page.

A result file carries the fingerprints of all weights that it measured (`config["weights"]`). What a result
says of a model that ships is drawn only if the fingerprint of the shipped weights is among them; a file that
states none is of unknown weights, and counts as one of other weights.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from torchsite.errors import ConfigError
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import load
from torchsite.results import Result

WEIGHTS = Path("src") / "torchsite" / "weights"
KEYS = ("weights", "fingerprints")
FINGERPRINT = re.compile(r"[0-9a-f]{16}")

Fingerprints = Mapping[str, str]


def shipped_weights(checkout: Path) -> dict[str, str]:
    """The fingerprint of every model that ships, by the name of its folder."""
    return {
        path.parent.name: _fingerprint_in(path.parent)
        for path in sorted((checkout / WEIGHTS).glob("*/config.json"))
    }


def stated(result: Result) -> frozenset[str]:
    """The fingerprints of weights that a result file carries."""
    return frozenset(_fingerprints(result.config))


def is_of(result: Result | None, weights: Sequence[str]) -> bool:
    """Whether a result is there and carries all these fingerprints."""
    return result is not None and set(weights) <= stated(result)


def of_shipped(result: Result, models: Sequence[str], shipped: Fingerprints) -> bool:
    """Whether a result measured the weights that ship of all these models; those that do not ship aside."""
    return is_of(result, [shipped[name] for name in models if name in shipped])


def note(result: Result, models: Sequence[str], shipped: Fingerprints) -> str:
    """What a page must say of the weights of a result; nothing if they are those that ship."""
    if any(name in shipped for name in models):
        if of_shipped(result, models, shipped):
            return ""
        return (
            "**Not measured on the weights that ship.** "
            f"{_which(result)} The table is left out until it is measured again."
        )
    if not result.config.get("weights", True):
        return ""  # it has measured no trained weights, and says so
    if stated(result) and stated(result) <= set(shipped.values()):
        return ""
    return f"Of models that do not ship with the package. {_which(result)}"


def with_weights(result: Result) -> Result:
    """The result itself; one that does not say which weights it measured is an error."""
    if not isinstance(result.config.get("weights"), Mapping):
        raise ConfigError(
            f"the result {result.name!r} does not state the weights that it measured: "
            "give its configuration `weights`, a fingerprint for each model (empty if there were none)"
        )
    return result


def _which(result: Result) -> str:
    found = sorted(stated(result))
    if not found:
        return "The file is older than the rule that results carry the fingerprints of their weights."
    few = ", ".join(f"`{one}`" for one in found[:3])
    return f"Their fingerprints: {few}{f' and {len(found) - 3} more' if len(found) > 3 else ''}."


def _fingerprints(config: Any, *, inside: bool = False) -> Iterator[str]:
    if isinstance(config, Mapping):
        for key, value in config.items():
            yield from _fingerprints(value, inside=inside or key in KEYS)
    elif inside and isinstance(config, str) and FINGERPRINT.fullmatch(config):
        yield config


@cache
def _fingerprint_in(folder: Path) -> str:
    return weights_of(load(folder))
