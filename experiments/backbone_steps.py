"""The steps of the table of backbones: one training and one file for each backbone, set and kind of model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from experiments.bam.data import painted_halves
from experiments.cache import step
from experiments.models import KINDS
from experiments.recipes import train_or_load
from torchsite.autotrain.choices import choose_settings
from torchsite.autotrain.poses import family_of
from torchsite.autotrain.survey import Survey
from torchsite.data import Dataset, load_dataset
from torchsite.errors import MissingExtraError, WeightsError
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import fingerprint, weights_of
from torchsite.metrics import Poses
from torchsite.model import SITE, BlackBox
from torchsite.model.blocks import n_parameters
from torchsite.randomness import make_rng
from torchsite.results import Result
from torchsite.training.recipes import Recipe, override

IMAGENET, RANDOM = "ImageNet", "random weights"
KEPT = ("accuracy", "patch_deletion", "frame_control", "self_consistency")
N_PROBED = 80
BUDGET: Mapping[str, int] = {"size": 64, "n_train": 640, "n_test": 400, "epochs": 5, "batch_size": 16}
QUICK_BUDGET: Mapping[str, int] = {"size": 32, "n_train": 32, "n_test": 12, "epochs": 1, "batch_size": 16}

Halves = tuple[Dataset, Dataset]


@dataclass(frozen=True)
class Candidate:
    """A feature extractor by name, its options, and what its weights are when training begins."""

    extractor: str
    options: Mapping[str, Any] = field(default_factory=dict)
    starts_from: str = RANDOM


def _library(name: str) -> Candidate:
    """A network of timm or torchvision, whose published weights are not asked for."""
    return Candidate(name, {"weights": None})


def _lite(name: str) -> Candidate:
    return Candidate(name, {"stride": 8}, IMAGENET)


BACKBONES: Mapping[str, Candidate] = {
    "EfficientNet-Lite0": _lite("efficientnet_lite0"),
    "EfficientNet-Lite1": _lite("efficientnet_lite1"),
    "EfficientNet-Lite2": _lite("efficientnet_lite2"),
    "ConvNeXt-Atto (timm)": _library("timm/convnext_atto"),
    "ResNet-18 (timm)": _library("timm/resnet18"),
    "MobileNetV3-small (torchvision)": _library("torchvision/mobilenet_v3_small"),
}
QUICK_BACKBONES: Mapping[str, Candidate] = {
    "pyramid, narrow (ours)": Candidate("pyramid", {"widths": [8, 8, 8, 16], "common": 8, "depth": 4}),
    "test ResNet (timm)": _library("timm/test_resnet"),
}
# Pets are at hand only as cut-outs of 64 pixels: the scenes are whole photographs.
SETS: Mapping[str, str] = {
    "food10": "Ten dishes of Food-101",
    "bam/scenes": "Ten scenes of MiniPlaces (those of BAM)",
}


def backbones_of(quick: bool) -> Mapping[str, Candidate]:
    """What is compared."""
    return QUICK_BACKBONES if quick else BACKBONES


def sets_of(quick: bool) -> Mapping[str, str]:
    """The sets by name, and what tables call them."""
    return {"painted": "Painted shapes"} if quick else SETS


def budget_of(quick: bool) -> dict[str, int]:
    """How many pictures of which size, how many epochs: the same for all."""
    return dict(QUICK_BUDGET if quick else BUDGET)


def measure(
    folder: Path,
    *,
    backbones: Sequence[str] | None = None,
    sets: Sequence[str] | None = None,
    kinds: Sequence[str] = KINDS,
    quick: bool = False,
) -> int:
    """Some of the cells, for a lane of its own; how many were measured."""
    found = steps(folder, backbones=backbones, sets=sets, kinds=kinds, quick=quick)
    return sum("reason" not in row for row in found)


def steps(
    folder: Path,
    *,
    backbones: Sequence[str] | None = None,
    sets: Sequence[str] | None = None,
    kinds: Sequence[str] = KINDS,
    quick: bool = False,
    progress: bool = False,
) -> Iterator[dict[str, Any]]:
    """A row for each cell; one whose library or weights are missing has a reason instead of scores."""
    for name in sets_of(quick):
        if sets is not None and name not in sets:
            continue
        halves = halves_of(name, quick, progress)
        for backbone, candidate in backbones_of(quick).items():
            for kind in kinds if backbones is None or backbone in backbones else ():
                row = {
                    "set": name,
                    "backbone": backbone,
                    "extractor": candidate.extractor,
                    "starts_from": candidate.starts_from,
                    "kind": kind,
                }
                place = folder / f"{_word(name)}-{_word(candidate.extractor)}-{kind}"
                try:
                    yield row | _cell(candidate, kind, halves, place, quick, progress)
                except (MissingExtraError, WeightsError) as error:
                    yield row | {"reason": str(error)}


def halves_of(name: str, quick: bool, progress: bool = False) -> Halves:
    """As many pictures of each class, in random order."""
    budget = budget_of(quick)
    if quick:
        painted = painted_halves()
        halves = (painted.train.labelled("object"), painted.test.labelled("object"))
    else:
        halves = (
            _load(name, "train", budget["size"], progress),
            _load(name, "test", budget["size"], progress),
        )
    return _some(halves[0], budget["n_train"]), _some(halves[1], budget["n_test"])


def recipe_of(candidate: Candidate, kind: str, quick: bool) -> Recipe:
    """What `torchsite train FOLDER` would choose, with this backbone and the budget of all."""
    budget = budget_of(quick)
    survey = Survey(budget["n_train"], budget["n_test"], 10, budget["size"])
    plan = choose_settings("backbones", survey, minutes=3, pretrained=candidate.starts_from == IMAGENET)
    training = replace(plan.recipe.training, family=family_of("upright"))
    model = {
        "feature_extractor": candidate.extractor,
        "extractor_options": dict(candidate.options),
        "kind": kind,
    }
    changes: dict[str, Any] = {f"model.{name}": value for name, value in model.items()}
    changes |= {key: budget[key] for key in ("size", "epochs", "batch_size")}
    return override(
        replace(plan.recipe, training=training),
        changes | {"validate_every": budget["epochs"], "n_validation": budget["n_test"]},
    )


def _cell(
    candidate: Candidate, kind: str, halves: Halves, place: Path, quick: bool, progress: bool
) -> dict[str, Any]:
    """Train, or take the finished run, and measure, or take the finished file."""
    recipe = recipe_of(candidate, kind, quick)
    model = train_or_load(recipe, place, data=halves, progress=progress)
    config = {"weights": weights_of(model), "pictures": fingerprint(halves[1].images)}
    find: Callable[[], dict[str, Any]] = partial(_scores, model, halves[1])
    scores = step(place.parent / "steps" / f"{place.name}.json", config, find).values
    training = Result.load(place / "result.json")
    return {
        "scores": dict(scores),
        "weights": config["weights"],
        "parameters": n_parameters(model),
        "training_seconds": training.seconds,
        **training.config["budget"],
    }


def _scores(model: SITE | BlackBox, test: Dataset) -> dict[str, Any]:
    poses = Poses(model.config.family, n=1)
    found = evaluate(model, test, poses=poses, batch_size=50, n_probed=N_PROBED).values
    return {name: found[name] for name in KEPT if name in found}


def _load(name: str, half: str, size: int, progress: bool) -> Dataset:
    return load_dataset(name, half, size=size, progress=progress)


def _some(data: Dataset, n: int) -> Dataset:
    """Spread over the data, which is sorted by class, and in random order: batches show all classes."""
    some = data.spread(n)
    return some[torch.randperm(len(some), generator=make_rng(0, "backbones", data.split))]


def _word(name: str) -> str:
    return name.replace("/", "-")
