"""Convert a classifier that was trained elsewhere to a self-explaining model, its twin, by a short training.

The classifier is a module in Python; files of networks are not read, since reading them can run code. Its
layers up to the last maps become the twin's feature extractor, frozen or tuned at a small rate; what comes
after is new. The twin learns the labels and, with `same_answers`, also the classifier's own logits, so that
the two agree.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torchsite.autotrain.choices import Decision, Plan, choose_poses, choose_settings, choose_time
from torchsite.autotrain.folds import difference_in_words, paired_difference
from torchsite.autotrain.prepare import Prepared, examine_prepared
from torchsite.autotrain.survey import survey_halves
from torchsite.data import Dataset, to_float
from torchsite.errors import ConfigError
from torchsite.evaluation.answers import wilson
from torchsite.evaluation.compare import Watch
from torchsite.layers import Layer
from torchsite.metrics import plain
from torchsite.model import SITE
from torchsite.model.base import Normalise
from torchsite.model.classifier_front import ClassifierFront, n_classes_of
from torchsite.model.config import CUSTOM
from torchsite.modes import evaluating
from torchsite.objective import SameAnswers
from torchsite.objective.same_answers import write_answers
from torchsite.results import Result
from torchsite.shapes import Logits
from torchsite.training import Fitted, fit
from torchsite.training.recipes import pixel_statistics

ANSWERS_FILE = "answers.safetensors"
N_TRIED = 256
BATCH = 32
MOST_AT_ONCE = 32  # pictures of a step: as for all that starts from learnt weights
Statistics = tuple[tuple[float, ...], tuple[float, ...]]
# What pictures are usually normalised with before a network sees them; grey pictures take the means.
USUAL: dict[str, Statistics] = {
    "none": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
}


@dataclass(frozen=True, eq=False)
class Conversion:
    """The twin, what was chosen and why, and how the two networks compare on the test pictures."""

    model: SITE
    fitted: Fitted[SITE]
    prepared: Prepared
    comparison: dict[str, Any]

    def examined(self, watch: Watch | None = None) -> Result:
        """The examination for the report, with both networks' accuracies."""
        result = examine_prepared(self.prepared, self.fitted, watch)
        return replace(result, values={**result.values, "twin": self.comparison})


def convert(
    classifier: nn.Module,
    train: Dataset,
    test: Dataset,
    *,
    folder: Path | str,
    minutes: float = 10.0,
    layer: Layer | Sequence[Layer] | None = None,
    fine_tuning: float = 0.1,
    same_answers: float = 1.0,
    statistics: Statistics | None = None,
    poses: str = "auto",
    changes: Mapping[str, Any] | None = None,
    progress: bool = False,
) -> Conversion:
    """Train a twin of `classifier` on `train` within `minutes`, and compare the two on `test`.

    `layer` is where the classifier is cut, by default after its maps of stride 8 or more; `statistics` are
    the mean and standard deviation per channel that its pictures were normalised with, by default the usual
    ones with which it names most training pictures; `same_answers` is the weight of its own logits beside the
    labels. `changes` are fields of a recipe's training.
    """
    started, folder = time.monotonic(), Path(folder)
    channels, height, width = train.images.shape[1:]
    shape = (channels, height, width)
    _check_classes(classifier, train, shape)
    normalised, how = choose_statistics(classifier, train, statistics)
    answers = answers_of(classifier, train, normalised)
    plan = choose_poses(_settings(train, test, minutes).changed(how), poses, train)
    if same_answers:
        plan = _keep_answers(plan, same_answers, write_answers(folder / ANSWERS_FILE, answers))
    training = plan.overridden(changes or {}).recipe.training
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(training.seed)
        twin = SITE.from_classifier(
            classifier,
            shape,
            layer,
            fine_tuning=fine_tuning,
            classes=train.classes,
            mean=normalised[0],
            std=normalised[1],
            family=training.family,
        )
    plan = plan.changed(_front(twin, fine_tuning))
    plan = choose_time(plan, minutes, time.monotonic() - started, (changes or {}).get("epochs"))
    prepared = Prepared(plan.overridden(changes or {}), train, test, (), minutes, started)
    config = prepared.plan.recipe.training
    fitted = fit(twin, train, config, validation=test, folder=folder, progress=progress)
    compared = compare_answers(answers_of(classifier, test, normalised), answers_of(twin, test), test)
    compared |= {"training_accuracy": float((answers.argmax(1) == train.labels).float().mean())}
    about = {"data": train.name, "layer": _layer(twin)}
    Result("conversion", compared, about, config.seed, fitted.seconds).save(folder / "conversion.json")
    return Conversion(fitted.model, fitted, prepared, compared)


def choose_statistics(
    classifier: nn.Module, data: Dataset, given: Statistics | None
) -> tuple[Statistics, Decision[str]]:
    """With which mean and standard deviation the classifier names most of some training pictures."""
    channels = data.images.shape[1]
    if given is not None:
        return given, Decision("normalisation", f"mean {given[0]}, std {given[1]}", "as you asked")
    some = data[:: max(1, len(data) // N_TRIED)]
    mean, std = pixel_statistics(data)
    tried = {name: tuple(_per_channel(part, channels) for part in pair) for name, pair in USUAL.items()}
    tried["data"] = (tuple(mean), tuple(std))
    shares = {
        name: float((answers_of(classifier, some, pair).argmax(1) == some.labels).float().mean())  # type: ignore[arg-type]
        for name, pair in tried.items()
    }
    best = max(shares, key=lambda name: shares[name])
    others = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if name != best)
    why = f"so the network names {shares[best]:.0%} of {len(some)} training pictures ({others})"
    return tried[best], Decision("normalisation", best, why)  # type: ignore[return-value]


@torch.no_grad()
def answers_of(classifier: nn.Module, data: Dataset, statistics: Statistics | None = None) -> Logits:
    """The logits of all pictures as they are."""
    normalise: nn.Module = nn.Identity() if statistics is None else Normalise(*statistics)
    with evaluating(classifier):
        parts = [classifier(normalise(to_float(part))) for part in data.images.split(BATCH)]
    return torch.cat(parts).float()


def compare_answers(theirs: Logits, ours: Logits, data: Dataset) -> dict[str, Any]:
    """Both accuracies and the agreement with their intervals, and how often which of the two is right."""
    said, says = theirs.argmax(1), ours.argmax(1)
    right, rights, n = said == data.labels, says == data.labels, len(data)
    return {
        "n": n,
        "classifier": plain(wilson(int(right.sum()), n)),
        "twin": plain(wilson(int(rights.sum()), n)),
        "agreement": plain(wilson(int((said == says).sum()), n)),
        "difference": difference_in_words(paired_difference(rights, right), "the twin", "the network"),
        "both_right": int((right & rights).sum()),
        "only_classifier_right": int((right & ~rights).sum()),
        "only_twin_right": int((~right & rights).sum()),
        "both_wrong": int((~right & ~rights).sum()),
    }


def _check_classes(classifier: nn.Module, data: Dataset, shape: tuple[int, int, int]) -> None:
    n_classes = n_classes_of(classifier, shape)
    if n_classes != len(data.classes):
        raise ConfigError(
            f"the network answers {n_classes} values to a picture, {data.name} has {len(data.classes)} "
            "classes: expected one for each, in the order of the classes"
        )


def _settings(train: Dataset, test: Dataset, minutes: float) -> Plan:
    """The settings that a folder's training would have, but the network's size and extractor."""
    plan = choose_settings(train.name, survey_halves(train, test), minutes=minutes, pretrained=False)
    kept = tuple(decision for decision in plan.decisions if decision.setting not in ("size", "extractor"))
    batch = min(MOST_AT_ONCE, plan.recipe.training.batch_size)
    return Plan(plan.recipe, kept).changed(
        Decision("size", train.images.shape[-2], "what the network takes", "size"),
        Decision("batch", batch, "a usual size for learnt weights", "batch_size"),
        fields={
            "model.feature_extractor": CUSTOM,
            "model.extractor_options": {},
            "learning_rate": 2e-3,
            "schedule": "cosine",
        },
    )


def _keep_answers(plan: Plan, weight: float, file: Path) -> Plan:
    """The plan with a term for the network's own logits, which are in a file."""
    why = "the network's own answers are learnt beside the labels, so that the two agree"
    terms = (*plan.recipe.training.terms, SameAnswers(weight=weight, answers=str(file)))
    decision = Decision("same answers", weight, why, text=f"weight {weight:g}")
    return plan.changed(decision, fields={"terms": terms})


def _front(twin: SITE, fine_tuning: float) -> Decision[str]:
    rate = "frozen" if not fine_tuning else f"tuned at {fine_tuning:g} of the learning rate"
    cells = "×".join(map(str, twin.feature_shape[1:]))
    return Decision("front", f"maps of {_layer(twin)}", f"{cells} cells, {rate}")


def _layer(twin: SITE) -> str:
    assert isinstance(twin.feature_extractor, ClassifierFront)
    return ", ".join(twin.feature_extractor.layers)


def _per_channel(values: tuple[float, ...], channels: int) -> tuple[float, ...]:
    return values if channels == len(values) else (sum(values) / len(values),) * channels
