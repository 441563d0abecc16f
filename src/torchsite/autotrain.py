"""One's own pictures: look at the folder, choose settings that fit the time, train, and examine the model.

Command:  torchsite train FOLDER --minutes 30
Cost:     the minutes that are given: three quarters for training, the rest for looking and for the report.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import yaml
from PIL import Image

from torchsite.configs import to_mapping
from torchsite.data import CATALOGUE, Dataset, load_dataset
from torchsite.data.folders import list_split
from torchsite.data.imagecache import Listing, usual_channels
from torchsite.data.inspection import Finding, inspect_halves, read_half
from torchsite.data.label_tables import labelled_rows, load_labelled, read_label_table
from torchsite.data.load import find_folder
from torchsite.data.request import Request
from torchsite.data.stacks import is_special, read_stack
from torchsite.evaluation.compare import Watch
from torchsite.evaluation.examine import examine
from torchsite.evaluation.examine_labels import examine_labels
from torchsite.evaluation.training_log import find_log
from torchsite.files import write_atomically
from torchsite.model import SITE, BlackBox
from torchsite.model.efficientnet import LITE1, LITE2, is_installed
from torchsite.results import Result
from torchsite.training import Fitted, fit
from torchsite.training.auto import (
    Plan,
    choose_margin,
    choose_poses,
    choose_settings,
    choose_time,
    for_several,
)
from torchsite.training.loop import Run
from torchsite.training.poses import AUTO
from torchsite.training.recipes import Recipe, build_model, load_recipe, override
from torchsite.training.survey import Decision, Survey
from torchsite.training.watch import Watch as TrainingWatch

RECIPE_FILE = "recipe.yaml"
N_SURVEYED = 400

# How often a model is asked for a picture: by a validation, by measures that probe, by all methods.
PER_VALIDATION = 5
PER_PROBED = 50
PER_COMPARED = 60
# Which parts of the time that is left they may take; what remains is for drawing the report.
LOOKING, PROBING, COMPARING = 0.2, 0.15, 0.1


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

    `poses` names those that fit (`training/poses.py`); "auto" asks the pictures whether they
    have an up. `labels` is a table where several may be true of a picture (`data/label_tables.py`). A
    recipe that an earlier run left in `folder` is taken as it is, so that the run can go on.
    """
    started = time.monotonic()
    changes = dict(changes or {})
    left = None if folder is None else folder / RECIPE_FILE
    if left is not None and left.is_file():
        decision = Decision("all settings", str(left), "an earlier run was begun with these")
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
    plan = Plan(override(plan.recipe, changes), (*_kept(plan, changes), *_own(changes)))
    plan = choose_time(plan, minutes, time.monotonic() - started, changes.get("epochs"))
    plan = Plan(override(plan.recipe, changes), plan.decisions)
    return Prepared(plan, train, test, findings, minutes, started)


class KeepRecipe(TrainingWatch):
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
    watches: Sequence[TrainingWatch] = (),
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
        watches=[KeepRecipe(recipe, folder), *watches],
    )


def examine_prepared(
    prepared: Prepared, fitted: Fitted[SITE] | Fitted[SITE | BlackBox], watch: Watch | None = None
) -> Result:
    """The examination for the report, on as many pictures as there is time for.

    Where several labels may be true of a picture, it is one of their figures, label by label.
    """
    afforded, log = affordable(prepared, fitted), find_log(fitted.folder / "model")
    if prepared.test.marks is not None:
        return examine_labels(
            fitted.model, prepared.test, training=prepared.train, log=log, limit=afforded.looked_at
        )
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


def open_halves(
    data: str, size: int | None, progress: bool, labels: Path | None = None, margin: float = 1.0
) -> tuple[Dataset, Dataset, tuple[Finding, ...]]:
    """Both halves at a size; those of a folder are inspected, published sets are taken as they are.

    With a table of labels the folder holds the pictures that it names; with a margin its pictures are
    the centres of larger ones.
    """
    if labels is not None:
        table = read_label_table(labels)
        both = [_request(data, half, size, progress, margin) for half in ("train", "test")]
        ours, theirs = (load_labelled(find_folder(request), table, request) for request in both)
        return ours, theirs, ()
    if data in CATALOGUE:
        train, test = (load_dataset(data, half, size=size, progress=progress) for half in ("train", "test"))
        return train, test, ()
    requests = [_request(data, half, size, progress, margin) for half in ("train", "test")]
    mine, others = (read_half(find_folder(request), request) for request in requests)
    return mine.pictures, others.pictures, tuple(inspect_halves(mine, others))


def survey_data(data: str, limit: int | None = None) -> Survey:
    """How many pictures of which size, from the heads of the files."""
    if data in CATALOGUE:
        train, test = (load_dataset(data, half, progress=False) for half in ("train", "test"))
        n_train = len(train.spread(limit))
        side = min(train.images.shape[-2:])
        return Survey(n_train, len(test), len(train.classes), side, train.counts)
    requests = [_request(data, half, None, False) for half in ("train", "test")]
    ours, theirs = (list_split(find_folder(request), request) for request in requests)
    n_train = len(ours.files) if limit is None else min(limit, len(ours.files))
    counts = tuple(ours.labels.count(label) for label in range(len(ours.classes)))
    side, channels = usual_side(ours), usual_channels(ours)
    return Survey(n_train, len(theirs.files), len(ours.classes), side, counts, channels)


def survey_labelled(data: str, labels: Path) -> Survey:
    """The same of a table of labels and its pictures."""
    table, requests = (
        read_label_table(labels),
        [_request(data, half, None, False) for half in ("train", "test")],
    )
    ours, theirs = (labelled_rows(table, request) for request in requests)
    root = find_folder(requests[0])
    files = tuple(table.files[row] for row in ours)
    listing = Listing(root.name, root, files, (0,) * len(files), table.classes)
    counts = tuple(table.marks[ours].sum(0).tolist())
    side, channels = usual_side(listing), usual_channels(listing)
    return Survey(len(ours), len(theirs), len(table.classes), side, counts, channels)


def usual_side(listing: Listing) -> int:
    """The median of the shorter sides, from some of the pictures."""
    step = max(1, len(listing.files) // N_SURVEYED)
    sides = []
    for path in listing.paths[::step]:
        try:
            if is_special(path):
                sides.append(min(read_stack(path).shape[1:]))
                continue
            with Image.open(path) as picture:
                sides.append(min(picture.size))
        except Exception:  # damaged files make Pillow fail in many ways; reading them later says how
            continue
    return round(median(sides)) if sides else 128


def _request(data: str, half: str, size: int | None, progress: bool, margin: float = 1.0) -> Request:
    return Request(data, half, size=size, progress=progress, skip_unreadable=True, margin=margin)


def _kept(plan: Plan, changes: Mapping[str, Any]) -> list[Decision]:
    """The decisions that the user did not take himself."""
    fields = {
        "size": "size",
        "extractor": "model.feature_extractor",
        "batch": "batch_size",
        "targets": "terms.transformation.targets",
        "class weights": "class_weights",
    }
    given = {name.replace("-", "_") for name in changes}
    return [decision for decision in plan.decisions if fields.get(decision.setting) not in given]


def _own(changes: Mapping[str, Any]) -> list[Decision]:
    return [Decision(name.replace("-", "_"), str(value), "as you asked") for name, value in changes.items()]


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
