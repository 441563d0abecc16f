"""One's own pictures: read the folder, choose settings that fit the time, and train.

Command:  torchsite train FOLDER --minutes 30
Cost:     the minutes that are given: three quarters for training, the rest for reading and for the report.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from torchsite.autotrain.choices import (
    Decision,
    Plan,
    choose_margin,
    choose_poses,
    choose_settings,
    choose_time,
    for_several,
)
from torchsite.autotrain.inspection import Finding
from torchsite.autotrain.poses import AUTO
from torchsite.autotrain.survey import open_halves, survey_data, survey_labelled
from torchsite.configs import to_mapping
from torchsite.data import CATALOGUE, Dataset
from torchsite.files import write_atomically
from torchsite.model import SITE, BlackBox
from torchsite.model.efficientnet import LITE1, LITE2, is_installed
from torchsite.training import Callback, Fitted, fit
from torchsite.training.loop import Run
from torchsite.training.recipes import Recipe, build_model, load_recipe, override

RECIPE_FILE = "recipe.yaml"


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that is known before training: the plan, both halves, what may harm, and how much time there is."""

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
    folder: Path | None = None,
    limit: int | None = None,
    progress: bool = False,
) -> Prepared:
    """Look at the pictures and choose settings; `changes` are settings of the user's own.

    `poses` names those that fit (`poses.py`); "auto" detects whether the pictures have an upright
    orientation. `labels` is a table where several may be true of a picture (`data/label_tables.py`). A
    recipe that an earlier run left in `folder` is taken as it is, so that the run can go on.
    """
    started = time.monotonic()
    changes = dict(changes or {})
    left = None if folder is None else folder / RECIPE_FILE
    if left is not None and left.is_file():
        decision = Decision("all settings", left, "an earlier run was begun with these")
        plan = Plan(override(load_recipe(left), changes), (decision,))
        recipe = plan.recipe
        train, test, findings = open_halves(data, recipe.size, progress, labels, recipe.margin)
        return Prepared(plan, train.spread(limit), test, findings, minutes, started)
    survey = survey_data(data, limit) if labels is None else survey_labelled(data, labels)
    deeper = [f"efficientnet_{variant.name}" for variant in (LITE1, LITE2) if is_installed(variant)]
    plan = choose_settings(data, survey, minutes=minutes, pretrained=is_installed(), deeper=deeper)
    plan = plan if labels is None else for_several(plan)
    size = override(plan.recipe, changes).size
    if data not in CATALOGUE and "margin" not in changes and size is not None:
        plan = choose_margin(plan, survey, size)
    margin = override(plan.recipe, changes).margin
    train, test, findings = open_halves(data, size, progress, labels, margin)
    train = train.spread(limit)
    plan = choose_poses(plan, poses, train)
    plan = choose_time(plan, minutes, time.monotonic() - started, changes.get("epochs"))
    return Prepared(plan.overridden(changes), train, test, findings, minutes, started)


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
