"""Settings chosen by the data: what `torchsite train FOLDER --minutes 30` does before it trains.

Size, extractor, batch and targets follow from what the pictures are (`choose_settings`); the number of epochs
from how long a step takes here, with this model and this batch (`measure_pace`, `choose_epochs`). Every
decision comes with its reason.
"""

import copy
import math
import tempfile
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.model import SITE, BlackBox
from torchsite.objective import AdditiveEvidence, EquivarianceTerm, TransformationTerm
from torchsite.training.config import TrainingConfig
from torchsite.training.fit import fit
from torchsite.training.loop import Run
from torchsite.training.poses import AUTO, family_of, guess_poses
from torchsite.training.recipes import ModelSettings, Recipe, build_model
from torchsite.training.watch import Watch

PRETRAINED = "efficientnet_lite0"
DEEPER = ("efficientnet_lite2", "efficientnet_lite1")  # the deepest first
FROM_SCRATCH = "pyramid"
MOST_PRETRAINED = 60
MOST_FROM_SCRATCH = 200
MANY_CLASSES = 40
WARM_UP_STEPS = 2
MEASURED_STEPS = 4
TRAINING_SHARE = 0.75
MARGIN = 0.9

# Seconds that training takes for both views of a picture of 64 pixels on two cores, roughly: only the size is
# chosen by it.
ROUGH_COST = {PRETRAINED: 0.012, "efficientnet_lite1": 0.019, "efficientnet_lite2": 0.026, "pyramid": 0.06}
SIZES = (512, 384, 320, 256, 224, 192, 160, 128, 96, 64)
USUAL_SIZE = 128
ENOUGH_EPOCHS = 10
PLENTY_OF_EPOCHS = 30  # what must fit before pictures are taken larger than usual
LARGEST_OF_MANY_CLASSES = 256
UNEVEN = 2.0


@dataclass(frozen=True)
class Survey:
    """What is known of a folder before anything is decoded; `side` is the usual shorter side in pixels."""

    n_train: int
    n_test: int
    n_classes: int
    side: int
    counts: tuple[int, ...] = ()
    channels: int = 3

    def __post_init__(self) -> None:
        if self.n_train < 4 or self.n_test < 2:
            raise ConfigError(
                f"expected at least 4 pictures to train on and 2 to test with, got {self.n_train} and "
                f"{self.n_test}: add some"
            )


@dataclass(frozen=True)
class Decision:
    """One setting, what was chosen, and why."""

    setting: str
    chosen: str
    why: str


@dataclass(frozen=True)
class Pace:
    """How long things take here: one training step, and one validation."""

    step: float
    validation: float


@dataclass(frozen=True)
class Plan:
    """A recipe and the reasons for it; `seconds` is how long its training should take."""

    recipe: Recipe
    decisions: tuple[Decision, ...]
    seconds: float = 0.0


def choose_settings(
    data: str, survey: Survey, *, minutes: float, pretrained: bool, deeper: Collection[str] = ()
) -> Plan:
    """All settings but the number of epochs; `deeper` are the deeper pretrained extractors at hand."""
    extractor = _extractor(survey, pretrained)
    size = _size(survey, extractor.chosen, minutes)
    extractor = _deeper(extractor, survey, int(size.chosen), minutes, deeper)
    batch = _batch(survey, extractor.chosen)
    targets, weights = _targets(survey), _class_weights(survey)
    model = ModelSettings(
        feature_extractor=extractor.chosen,
        extractor_options=_options(extractor.chosen, int(size.chosen), survey, minutes),
        zero_sum=True,
        generator="spatial",
    )
    training = TrainingConfig(
        batch_size=int(batch.chosen),
        learning_rate=3e-3 if extractor.chosen == FROM_SCRATCH else 2e-3,
        schedule="one_cycle" if extractor.chosen == FROM_SCRATCH else "cosine",
        class_weights=weights.chosen,  # type: ignore[arg-type]  # "equal", "balanced"
        terms=(
            TransformationTerm(weight=0.5, targets=targets.chosen),  # type: ignore[arg-type]  # "nearest", "mean"
            EquivarianceTerm(maps="relative"),
            AdditiveEvidence(place=0.2, sizes="shapley", beta=0.2),
        ),
        corners=("black", "mean", "mean", "other"),
        collapse_patience=MOST_FROM_SCRATCH,
        n_validation=min(500, survey.n_test),
    )
    views = Decision(
        "views",
        "two and a half",
        "each picture as it is and in a random pose, whose heatmaps must agree; every second one with parts "
        "hidden, of which the heatmap must have said what they are worth",
    )
    corners = Decision(
        "corners", "filled", "black ones alone would tell the pose of the frame, and maps would follow that"
    )
    poses = Decision("poses", str(training.family), "the paper's, until the pictures are looked at")
    recipe = Recipe(data, int(size.chosen), model=model, training=training)
    return Plan(recipe, (size, extractor, batch, targets, weights, views, corners, poses))


def choose_poses(plan: Plan, name: str, pictures: Dataset) -> Plan:
    """The plan with the poses of a name; "auto" asks the pictures whether they have an up."""
    if name == AUTO:
        guess = guess_poses(pictures, plan.recipe.training.seed)
        name, why = guess.poses, guess.why
    else:
        why = "as you asked"
    family = family_of(name)
    decisions = tuple(
        Decision("poses", f"{name}: {family}", why) if decision.setting == "poses" else decision
        for decision in plan.decisions
    )
    recipe = replace(plan.recipe, training=replace(plan.recipe.training, family=family))
    return replace(plan, recipe=recipe, decisions=decisions)


def choose_epochs(plan: Plan, pace: Pace, survey: Survey, minutes: float) -> Plan:
    """The plan with as many epochs as fit into its share of the time, and not more than help."""
    n_steps = survey.n_train // plan.recipe.training.batch_size
    seconds = 60 * minutes * TRAINING_SHARE * MARGIN
    fitting = int((seconds - pace.validation) / (n_steps * pace.step))
    learns_anew = plan.recipe.model.feature_extractor == FROM_SCRATCH
    most = MOST_FROM_SCRATCH if learns_anew else MOST_PRETRAINED
    epochs = max(1, min(fitting, most))
    every = max(1, math.ceil(epochs / 5))
    n_validations = epochs / every
    if n_validations > 1 and epochs < most:  # their time is training time as well
        epochs = max(1, int((seconds - n_validations * pace.validation) / (n_steps * pace.step)))
        every = max(1, math.ceil(epochs / 5))
    estimate = epochs * n_steps * pace.step + math.ceil(epochs / every) * pace.validation
    limit = f"{most} is where more stops to help" if epochs == most else f"{minutes:g} minutes allow no more"
    if fitting < 1:
        limit = f"even one exceeds its share of {minutes:g} minutes: training will be stopped before its end"
    why = f"{n_steps} steps of {pace.step:.2f} s each, {estimate / 60:.1f} minutes in all; {limit}"
    training = replace(plan.recipe.training, epochs=epochs, validate_every=every)
    recipe = replace(plan.recipe, training=training)
    return Plan(recipe, (*plan.decisions, Decision("epochs", str(epochs), why)), estimate)


def measure_pace(recipe: Recipe, train: Dataset, test: Dataset, model: SITE | BlackBox | None = None) -> Pace:
    """A few steps and one small validation with the very model and batch, thrown away afterwards.

    A `model` that is given is copied and stays as it is; without one, that of the recipe is built.
    """
    watch = _StepWatch()
    n = min(len(train), (WARM_UP_STEPS + MEASURED_STEPS) * recipe.training.batch_size)
    n_validation = min(len(test), 32)
    short: Mapping[str, Any] = {"epochs": 1, "validate_every": 1, "n_validation": n_validation}
    config = replace(recipe.training, **short, checkpoint_seconds=math.inf)
    rows = _spread(train, n)
    model = build_model(recipe.model, train, config) if model is None else copy.deepcopy(model)
    with tempfile.TemporaryDirectory(prefix="torchsite-") as folder:
        fit(
            model,
            rows,
            config,
            validation=test[:n_validation],
            folder=Path(folder) / "pace",
            watches=[watch],
        )
    all_of_them = min(recipe.training.n_validation, len(test)) / n_validation
    return Pace(watch.step_seconds, watch.validation_seconds * all_of_them)


class Deadline(Watch):
    """Ends training when its time is up: other work on the machine may have slowed it down."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.started_at = time.monotonic()
        self.reached = False

    def step_done(self, run: Run, losses: Mapping[str, Tensor]) -> None:
        """Ask the run to end."""
        if not self.reached and time.monotonic() - self.started_at > self.seconds:
            self.reached = run.ending = True


class _StepWatch(Watch):
    """Notes when steps end and how long a validation takes."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.validation_seconds = 0.0

    @property
    def step_seconds(self) -> float:
        """The mean time of the steps after the first ones; of all, if there are no others."""
        counted = self.ends[min(WARM_UP_STEPS, max(0, len(self.ends) - 2)) :]
        return (counted[-1] - counted[0]) / max(1, len(counted) - 1)

    def started(self, run: Run) -> None:
        """The clock starts."""
        self.ends.append(time.monotonic())

    def step_done(self, run: Run, losses: Mapping[str, Tensor]) -> None:
        """One step more."""
        self.ends.append(time.monotonic())

    def validated(self, run: Run, measures: Mapping[str, float], seconds: float) -> None:
        """Keep the time of the first one."""
        self.validation_seconds = self.validation_seconds or seconds


def _extractor(survey: Survey, pretrained: bool) -> Decision:
    if survey.side < 48:
        return Decision(
            "extractor", "pyramid", f"pictures of {survey.side} pixels are too small for ImageNet's"
        )
    if survey.channels != 3:
        why = f"ImageNet's networks see three channels, these pictures have {survey.channels}"
        return Decision("extractor", "pyramid", why)
    if pretrained:
        return Decision(
            "extractor", PRETRAINED, f"starts from ImageNet: {survey.n_train:,} pictures go further"
        )
    return Decision(
        "extractor",
        "pyramid",
        "learns from nothing; pip install 'torchsite[pretrained]' to start from ImageNet",
    )


def _size(survey: Survey, extractor: str, minutes: float) -> Decision:
    """The largest useful size at which enough epochs fit into the time."""
    sizes = (64, 32) if extractor == FROM_SCRATCH else SIZES
    most = LARGEST_OF_MANY_CLASSES if survey.n_classes > MANY_CLASSES else sizes[0]
    useful = [size for size in sizes if size <= min(most, 1.25 * survey.side)] or [sizes[-1]]
    for size in useful:
        epochs = PLENTY_OF_EPOCHS if size > USUAL_SIZE else ENOUGH_EPOCHS
        if epochs * _epoch_seconds(survey, extractor, size) <= 60 * minutes * TRAINING_SHARE:
            break
    why = f"the pictures have about {survey.side}"
    if size != useful[0]:
        larger = useful[useful.index(size) - 1]
        least = PLENTY_OF_EPOCHS if larger > USUAL_SIZE else ENOUGH_EPOCHS
        why += f"; {larger} would leave fewer than {least} epochs in {minutes:g} minutes"
    elif extractor == FROM_SCRATCH and survey.side > 1.25 * sizes[0]:
        why += "; more is too slow to learn from nothing on a few cores"
    return Decision("size", str(size), why)


def _epoch_seconds(survey: Survey, extractor: str, size: int) -> float:
    """How long an epoch takes, roughly: see ROUGH_COST."""
    return survey.n_train * ROUGH_COST[extractor] * (size / 64) ** 2


def _deeper(usual: Decision, survey: Survey, size: int, minutes: float, deeper: Collection[str]) -> Decision:
    """The deepest pretrained extractor with which as many epochs fit as help."""
    if usual.chosen != PRETRAINED:
        return usual
    for name in DEEPER:
        seconds = MOST_PRETRAINED * _epoch_seconds(survey, name, size)
        if name in deeper and seconds <= 60 * minutes * TRAINING_SHARE:
            why = f"starts from ImageNet; {minutes:g} minutes allow a deeper one with all epochs that help"
            return Decision("extractor", name, why)
    return usual


def _options(extractor: str, size: int, survey: Survey, minutes: float) -> dict[str, Any]:
    """Features of about 16 × 16 cells, fine enough to point with; finer ones where there is time for them."""
    if extractor == FROM_SCRATCH:
        return {}
    finer = 2 * MOST_PRETRAINED * _epoch_seconds(survey, extractor, size) <= 60 * minutes * TRAINING_SHARE
    return {"stride": 4 if size <= 64 or (size <= USUAL_SIZE and finer) else 8}


def _class_weights(survey: Survey) -> Decision:
    counts = [n for n in survey.counts if n]
    if not counts or max(counts) <= UNEVEN * min(counts):
        return Decision("class weights", "equal", "the classes are of similar size")
    why = f"the largest class has {max(counts)} pictures, the smallest {min(counts)}: each counts the same"
    return Decision("class weights", "balanced", why)


def _batch(survey: Survey, extractor: str) -> Decision:
    most = 64 if extractor == FROM_SCRATCH else 32
    wanted = max(2, min(most, survey.n_train // 10))
    batch = 2 ** int(math.log2(wanted))
    why = (
        "a usual size"
        if batch == most
        else f"{survey.n_train} pictures give {survey.n_train // batch} steps an epoch"
    )
    return Decision("batch", str(batch), why)


def _targets(survey: Survey) -> Decision:
    if survey.n_classes > MANY_CLASSES:
        why = f"the nearest of each of {survey.n_classes} classes would take much memory"
        return Decision("targets", "mean", why)
    return Decision("targets", "nearest", "prototypes that resemble the picture at hand")


def _spread(data: Dataset, n: int) -> Dataset:
    """Pictures spread over the data, with one of each class."""
    step = max(1, len(data) // n)
    rows = set(range(0, len(data), step)) | {data.labels.tolist().index(k) for k in set(data.labels.tolist())}
    return data[sorted(rows)]
