"""The examination after a training: as many pictures as there is time for."""

from dataclasses import replace
from typing import Any, NamedTuple

from torchsite.autotrain.prepare import Prepared
from torchsite.evaluation.compare import Watch
from torchsite.evaluation.examine import examine
from torchsite.evaluation.training_log import find_log
from torchsite.model import SITE, BlackBox
from torchsite.results import Result
from torchsite.training import Fitted

# How often a model is asked for a picture: by a validation, by measures that probe, by all methods.
PER_VALIDATION = 5
PER_PROBED = 50
PER_COMPARED = 60
# Which parts of the time that is left they may take; what remains is for drawing the report.
LOOKING, PROBING, COMPARING = 0.2, 0.15, 0.1


def examine_prepared(
    prepared: Prepared, fitted: Fitted[SITE] | Fitted[SITE | BlackBox], watch: Watch | None = None
) -> Result:
    """The examination for the report, on as many pictures as there is time for.

    Where several labels may be true of a picture, it is one of their figures, label by label.
    """
    afforded, log = affordable(prepared, fitted), find_log(fitted.folder / "model")
    result = examine(
        fitted.model,
        prepared.test,
        training=prepared.train,
        log=log,
        limit=afforded.looked_at,
        n_compared=afforded.compared,
        n_probed=afforded.probed,
        batch_size=32,
        watch=watch,
    )
    warnings = [str(finding) for finding in prepared.findings]
    return replace(result, values={**result.values, "inspection": warnings})


class Afforded(NamedTuple):
    """How many pictures an examination looks at, how many are probed, how many all methods explain."""

    looked_at: int
    probed: int
    compared: int


def affordable(prepared: Prepared, fitted: Fitted[Any]) -> Afforded:
    """As many as there is time for: all three follow from how long a picture of a validation took."""
    n = min(prepared.plan.recipe.training.n_validation, len(prepared.test))
    each = max(1e-4, fitted.validation_seconds / max(1, n))
    left, asked = max(30.0, prepared.seconds_left), each / PER_VALIDATION
    looked, probed, compared = (
        int(share * left / (asked * passes))
        for share, passes in (
            (LOOKING, PER_VALIDATION),
            (PROBING, PER_PROBED),
            (COMPARING, PER_COMPARED),
        )
    )
    return Afforded(max(20, min(2000, looked)), max(10, min(200, probed)), max(8, min(100, compared)))
