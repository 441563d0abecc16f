"""Beyond the paper's transforms: scale, shear, reflection and smooth distortions on MNIST.

Each family adds one thing to the paper's turns and shifts. A model trained without it and a model trained
with it are both measured under it.

Claim:    what a model was trained with, its explanations follow: under each family, training with it raises
          accuracy and self-consistency over training with turns and shifts alone.
Command:  torchsite reproduce families
Cost:     six trainings of five epochs on 12,000 pictures and sixteen evaluations on 2,000: less than half an
          hour on two cores; less than a minute with --quick, on embedded digits.
"""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torchsite.configs import to_mapping
from torchsite.data import Dataset, load_dataset
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import fingerprint
from torchsite.metrics import Poses
from torchsite.model import SITE, BlackBox
from torchsite.paper.cache import step
from torchsite.paper.runs import QUICK, trained
from torchsite.results import Result
from torchsite.training.recipes import load_recipe
from torchsite.transforms import TransformFamily

RECIPE = "mnist"
PAPER = "turns and shifts"
COMMON: Mapping[str, Any] = {"epochs": 5, "validate_every": 5}
N_TRAIN, N_TEST = 12_000, 2000

# What each family adds to the paper's; beyond these ranges digits turn into others or leave the frame.
FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "scale": {"scale": [0.6, 1.4]},
    "shear": {"max_shear": 35.0},
    "reflection": {"reflect": True},
    "smooth distortion": {"distortion": 0.6},
    "all of them": {"scale": [0.6, 1.4], "max_shear": 35.0, "reflect": True, "distortion": 0.6},
}


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train one model for each family and one without any; measure the one and the others under each."""
    started = time.monotonic()
    changes = dict(COMMON) | (dict(QUICK) if quick else {})
    name = "mnist_sample" if quick else RECIPE
    train = load_dataset(name, "train")[: 1000 if quick else N_TRAIN]
    test = load_dataset(name, "test")[: 60 if quick else N_TEST]

    def model_of(kind: str, added: Mapping[str, Any]) -> SITE | BlackBox:
        place = folder / kind.replace(" ", "_")
        return trained(RECIPE, place, changes | dict(added), data=(train, test), progress=progress)

    plain = model_of(PAPER, {})
    table: dict[str, Any] = {
        PAPER: {"without": _measured(plain, TransformFamily(), test, folder, PAPER, "without")}
    }
    for kind, added in FAMILIES.items():
        family = TransformFamily.from_mapping(added)
        models = {"without": plain, "with": model_of(kind, added)}
        table[kind] = {
            how: _measured(model, family, test, folder, kind, how) for how, model in models.items()
        }
        table[kind]["with, paper's poses"] = _measured(
            models["with"], TransformFamily(), test, folder, kind, "with-plain"
        )
    training = {kind: _training_seconds(folder, kind) for kind in (PAPER, *FAMILIES)}
    config = {
        "recipe": RECIPE,
        "settings": to_mapping(load_recipe(RECIPE).training) | changes,
        "families": {PAPER: str(TransformFamily())}
        | {kind: str(TransformFamily.from_mapping(added)) for kind, added in FAMILIES.items()},
        "n_train": len(train),
        "n_test": len(test),
        "quick": quick,
    }
    values = {"table": table, "training": training}
    seconds = max(time.monotonic() - started, sum(training.values()))
    result = Result("families", values, config, 0, seconds)
    result.save(folder / "families.json")
    return result


def _measured(
    model: SITE | BlackBox, family: TransformFamily, test: Dataset, folder: Path, kind: str, how: str
) -> dict[str, Any]:
    """Accuracy and the four figures of self-consistency under one family, found once."""
    config = {
        "weights": fingerprint(*model.state_dict().values()),
        "family": to_mapping(family),
        "pictures": fingerprint(test.images),
    }
    find = partial(_figures, model, family, test)
    return dict(step(folder / "steps" / f"{kind.replace(' ', '_')}-{how}.json", config, find).values)


def _figures(model: SITE | BlackBox, family: TransformFamily, test: Dataset) -> dict[str, Any]:
    values = evaluate(model, test, poses=Poses(family, 2)).values
    consistency = values["self_consistency"]
    return {
        "accuracy": values["accuracy"],
        "survives": values["prediction_equivariance"]["share"],
        "self_consistency": {name: consistency[name] for name in ("raw", "floor", "calibrated", "centred")},
    }


def _training_seconds(folder: Path, kind: str) -> float:
    return Result.load(folder / kind.replace(" ", "_") / "result.json").seconds
