"""Settings chosen by the data: what `torchsite train FOLDER --minutes 30` does before it trains.

Size, extractor, batch and targets follow from what the pictures are (`choose_settings`); how long training
takes, from the minutes that are given (`choose_time`). Every decision comes with its reason.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

from torchsite.data import Dataset
from torchsite.data.margins import larger_size
from torchsite.objective import AdditiveEvidence, EquivarianceTerm, TransformationTerm
from torchsite.training.config import TrainingConfig
from torchsite.training.extractor_choice import (
    FROM_SCRATCH,
    MANY_CLASSES,
    MOST_PRETRAINED,
    TRAINING_SHARE,
    choose_deeper,
    choose_extractor,
    choose_size,
    extractor_options,
)
from torchsite.training.poses import AUTO, family_of, guess_poses
from torchsite.training.recipes import ModelSettings, Recipe
from torchsite.training.survey import Decision, Survey

MOST_FROM_SCRATCH = 200
REPORT_SHARE = 0.15  # of the minutes, at least, for the report
LEAST_SHARE = 0.3  # of the minutes, at least, for training, however long looking took
N_VALIDATIONS = 5
VALIDATED_PER_MINUTE = 10
UNEVEN = 2.0
MARGIN = 1.25


@dataclass(frozen=True)
class Plan:
    """A recipe and the reasons for it."""

    recipe: Recipe
    decisions: tuple[Decision, ...]


def choose_settings(
    data: str, survey: Survey, *, minutes: float, pretrained: bool, deeper: Collection[str] = ()
) -> Plan:
    """All settings but the time; `deeper` are the deeper pretrained extractors at hand."""
    extractor = choose_extractor(survey, pretrained)
    size = choose_size(survey, extractor.chosen, minutes)
    extractor = choose_deeper(extractor, survey, int(size.chosen), minutes, deeper)
    batch = _batch(survey, extractor.chosen)
    targets, weights = _targets(survey), _class_weights(survey)
    model = ModelSettings(
        feature_extractor=extractor.chosen,
        extractor_options=extractor_options(extractor.chosen, int(size.chosen), survey, minutes),
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


def for_several(plan: Plan) -> Plan:
    """The plan for pictures with several labels: nothing is relative to all classes."""
    training, model = plan.recipe.training, replace(plan.recipe.model, zero_sum=False)
    terms = tuple(
        replace(term, maps="plain") if isinstance(term, EquivarianceTerm | AdditiveEvidence) else term
        for term in training.terms
        if not isinstance(term, TransformationTerm)
    )
    recipe = replace(plan.recipe, model=model, training=replace(training, terms=terms))
    kept = tuple(decision for decision in plan.decisions if decision.setting != "targets")
    why = "each label has a yes or no of its own (binary cross-entropy), and a map of its own"
    return replace(plan, recipe=recipe, decisions=(*kept, Decision("labels", "several", why)))


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


def choose_margin(plan: Plan, survey: Survey, size: int) -> Plan:
    """The plan with pictures that are kept larger than they are seen, where the files are as large."""
    kept = larger_size(size, MARGIN)
    if survey.side < kept:
        why = (
            f"{kept} pixels are needed around {size}, the files have about {survey.side}: corners are filled"
        )
        return replace(plan, decisions=(*plan.decisions, Decision("margin", "none", why)))
    why = (
        f"decoded at {kept} pixels, of which the centre of {size} is seen: turned views show what stands "
        "around it instead of corners; --margin 1 to see the whole picture"
    )
    recipe = replace(plan.recipe, margin=MARGIN)
    return replace(plan, recipe=recipe, decisions=(*plan.decisions, Decision("margin", f"{MARGIN:g}", why)))


def training_seconds(minutes: float, spent: float) -> float:
    """How long training may take: its share, or what looking has left of it once the report has its own."""
    whole = 60 * minutes
    return max(LEAST_SHARE * whole, min(TRAINING_SHARE * whole, (1 - REPORT_SHARE) * whole - spent))


def choose_time(plan: Plan, minutes: float, spent: float = 0.0, epochs: int | None = None) -> Plan:
    """The plan with the time that `spent` seconds leave for training, and with as many epochs as help.

    The more time, the more pictures a validation looks at.
    """
    learns_anew = plan.recipe.model.feature_extractor == FROM_SCRATCH
    most = epochs or (MOST_FROM_SCRATCH if learns_anew else MOST_PRETRAINED)
    seconds = round(training_seconds(minutes, spent), 1)
    training = plan.recipe.training
    training = replace(
        training,
        epochs=most,
        seconds=seconds,
        validate_every=math.ceil(most / N_VALIDATIONS),
        n_validation=min(training.n_validation, max(30, round(VALIDATED_PER_MINUTE * minutes))),
    )
    limit = "as you asked" if epochs else "where more stops to help"
    why = f"the learning rate falls with the clock, or over {most} epochs, {limit}, if they take less"
    decision = Decision("time", f"{seconds / 60:.1f} minutes", why)
    return Plan(replace(plan.recipe, training=training), (*plan.decisions, decision))


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
