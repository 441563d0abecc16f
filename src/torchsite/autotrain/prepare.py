"""Train on a folder of pictures: read it, choose settings that fit the time, train, examine.

Command:  torchsite train FOLDER --minutes 30
Cost:     the minutes that are given: three quarters for training, the rest for reading and for the report.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from torchsite.autotrain.choices import (
    Decision,
    Plan,
    choose_margin,
    choose_poses,
    choose_settings,
    choose_time,
    for_multi_label,
)
from torchsite.autotrain.inspection import Finding
from torchsite.autotrain.poses import AUTO
from torchsite.autotrain.survey import open_halves, survey_data
from torchsite.configs import to_mapping
from torchsite.data import CATALOGUE, Dataset
from torchsite.errors import DataError, MissingExtraError, NotApplicableError
from torchsite.evaluation.audit import FEWEST, Audit, audit
from torchsite.evaluation.audit_ignored import with_regions
from torchsite.evaluation.compare import Watch
from torchsite.evaluation.examine import examine
from torchsite.evaluation.training_log import find_log
from torchsite.files import write_atomically
from torchsite.model import SITE, BlackBox
from torchsite.model.efficientnet import LITE1, LITE2, is_installed
from torchsite.results import Result
from torchsite.training import Callback, Fitted, fit
from torchsite.training.loop import Run
from torchsite.training.recipes import Recipe, build_model, ignoring, load_recipe, override

RECIPE_FILE = "recipe.yaml"

# Forward passes per picture: in a validation, in measures that perturb it, in all attribution methods.
PER_VALIDATION, PER_PROBED, PER_COMPARED = 5, 50, 60
PER_GROUP = 40  # of an audit: six answers for each picture, about six groups of a class
AUDITING = 0.04  # seconds for each picture to test with
# Which parts of the time that is left they may take; what remains is for drawing the report.
LOOKING, PROBING, COMPARING = 0.2, 0.15, 0.1


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that is known before training: the plan, both halves, faults of the data, and the time."""

    plan: Plan
    train: Dataset
    test: Dataset
    findings: tuple[Finding, ...]
    minutes: float
    started: float

    @property
    def seconds_left(self) -> float:
        """What remains of the minutes."""
        return self.started + 60 * self.minutes - time.monotonic()


def prepare(
    data: str,
    *,
    minutes: float,
    changes: Mapping[str, Any] | None = None,
    poses: str = AUTO,
    labels: Path | None = None,
    ignore: Sequence[str] = (),
    folder: Path | None = None,
    limit: int | None = None,
    progress: bool = False,
) -> Prepared:
    """Survey the pictures and choose settings; `changes` are fields that the user has set.

    `ignore` are regions of the training pictures (`Recipe`).

    `poses` names those that fit (`poses.py`); "auto" detects whether the pictures have an upright
    orientation. `labels` is a table where several may be true of a picture (`data/label_tables.py`). A
    recipe that an earlier run left in `folder` is taken as it is, so that the run can go on.
    """
    started, changes = time.monotonic(), dict(changes or {})
    left = None if folder is None else folder / RECIPE_FILE
    goes_on = left is not None and left.is_file()
    if left is not None and goes_on:
        decision = Decision("all settings", left, "an earlier run was begun with these")
        plan = Plan(load_recipe(left), (decision,))
    else:
        plan = _settings(data, minutes, changes, labels, ignore, limit)
    recipe = override(plan.recipe, changes)
    train, test, findings = open_halves(
        data, recipe.size, labels=labels, margin=recipe.margin, progress=progress
    )
    train = with_regions(train, recipe.ignore, test).spread(limit)
    if not goes_on:
        plan = choose_poses(plan, poses, train)
        plan = choose_time(plan, minutes, time.monotonic() - started, changes.get("epochs"))
    return Prepared(plan.overridden(changes), train, test, findings, minutes, started)


def _settings(
    data: str,
    minutes: float,
    changes: Mapping[str, Any],
    labels: Path | None,
    ignore: Sequence[str],
    limit: int | None,
) -> Plan:
    """What is chosen before the pictures are decoded."""
    survey = survey_data(data, labels, limit)
    deeper = [variant.name for variant in (LITE1, LITE2) if is_installed(variant)]
    plan = choose_settings(data, survey, minutes=minutes, pretrained=is_installed(), deeper=deeper)
    plan = plan if labels is None else for_multi_label(plan)
    plan = replace(plan, recipe=ignoring(plan.recipe, ignore))
    size = override(plan.recipe, changes).size
    if data in CATALOGUE or "margin" in changes or size is None:
        return plan
    return choose_margin(plan, survey, size)


class KeepRecipe(Callback):
    """Writes the recipe into the run's folder once the folder is the run's own."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe, self.folder = recipe, folder

    def started(self, run: Run) -> None:
        """Write it."""
        text = yaml.safe_dump(to_mapping(self.recipe), sort_keys=False, allow_unicode=True)
        write_atomically(self.folder / RECIPE_FILE, text)


def train_prepared(
    prepared: Prepared,
    folder: Path,
    *,
    resume: bool = False,
    progress: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Fitted[SITE | BlackBox]:
    """Train as planned."""
    recipe = prepared.plan.recipe
    return fit(
        build_model(recipe.model, prepared.train, recipe.training),
        prepared.train,
        recipe.training,
        validation=prepared.test,
        folder=folder,
        resume=resume,
        progress=progress,
        callbacks=[KeepRecipe(recipe, folder), *callbacks],
    )


def examine_prepared(
    prepared: Prepared, fitted: Fitted[SITE] | Fitted[SITE | BlackBox], watch: Watch | None = None
) -> Result:
    """The examination for the report, on as many pictures as there is time for.

    Where several labels may be true of a picture, it is one of their figures, label by label.
    """
    afforded = affordable(prepared, fitted)
    result = examine(
        fitted.model,
        prepared.test,
        training=prepared.train,
        log=find_log(fitted.folder / "model"),
        limit=afforded.looked_at,
        n_compared=afforded.compared,
        n_probed=afforded.probed,
        batch_size=32,
        watch=watch,
    )
    warnings = [str(finding) for finding in prepared.findings]
    return replace(result, values={**result.values, "inspection": warnings})


def audit_prepared(prepared: Prepared, fitted: Fitted[Any], watch: Watch | None = None) -> Audit | None:
    """An audit of the pictures to test with, in a few seconds per hundred; None where that is not enough.

    There is none of too few pictures either, of several labels, and without the extra `audit`.
    """
    n_classes, seconds = len(prepared.test.classes), AUDITING * len(prepared.test)
    n = int(seconds / (seconds_each(prepared, fitted) * PER_GROUP * n_classes))
    if 2 * n < FEWEST:
        return None
    n = max(FEWEST, min(50, n))
    explain = None if isinstance(fitted.model, SITE) else "grad_cam"
    options: dict[str, Any] = {"limit": 2 * n, "n_probed": n, "batch_size": 32, "watch": watch}
    try:
        return audit(fitted.model, prepared.test, explain=explain, **options)
    except (DataError, NotApplicableError, MissingExtraError):
        return None


class Afforded(NamedTuple):
    """How many pictures an examination measures, how many it probes, how many all methods explain."""

    looked_at: int
    probed: int
    compared: int


def affordable(prepared: Prepared, fitted: Fitted[Any]) -> Afforded:
    """As many as there is time for: all three follow from how long a picture of a validation took."""
    left, asked = max(30.0, prepared.seconds_left), seconds_each(prepared, fitted)
    looked, probed, compared = (
        int(share * left / (asked * passes))
        for share, passes in ((LOOKING, PER_VALIDATION), (PROBING, PER_PROBED), (COMPARING, PER_COMPARED))
    )
    return Afforded(max(20, min(2000, looked)), max(10, min(200, probed)), max(8, min(100, compared)))


def seconds_each(prepared: Prepared, fitted: Fitted[Any]) -> float:
    """How long the model takes for a picture, by its last validation."""
    n = min(prepared.plan.recipe.training.n_validation, len(prepared.test))
    return max(1e-4, fitted.validation_seconds / max(1, n)) / PER_VALIDATION
