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

from matplotlib.figure import Figure

from experiments.cache import save_result, step
from experiments.models import QUICK, training_seconds
from experiments.recipes import load_recipe, train_or_load
from experiments.registry import Arrays
from experiments.section import CONSISTENCY, Pictures, source
from torchsite.configs import to_mapping
from torchsite.data import Dataset, load_dataset
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import fingerprint, weights_of
from torchsite.metrics import Poses
from torchsite.model import SITE, BlackBox
from torchsite.report.format import markdown_table, score
from torchsite.results import Result
from torchsite.transforms import TransformFamily

RECIPE = "mnist_first"
PAPER = "turns and shifts"
COMMON: Mapping[str, Any] = {"epochs": 5, "validate_every": 5}
N_TRAIN, N_TEST = 12_000, 2000

Scores = Mapping[str, Any]  # of a model under one family

# What each family adds to the paper's; beyond these ranges digits turn into others or leave the frame.
FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "scale": {"scale": [0.6, 1.4]},
    "shear": {"max_shear": 35.0},
    "reflection": {"reflect": True},
    "smooth distortion": {"distortion": 0.6},
    "all of them": {"scale": [0.6, 1.4], "max_shear": 35.0, "reflect": True, "distortion": 0.6},
}

# How the rows of the page say what a model was trained with.
TRAINED = {"without": "without", "with": "with", "with, paper's poses": "with, under turns and shifts alone"}


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train one model for each family and one without any; measure the one and the others under each."""
    started = time.monotonic()
    changes = dict(COMMON) | (dict(QUICK) if quick else {})
    name = "mnist_sample" if quick else load_recipe(RECIPE).data
    train = load_dataset(name, "train")[: 1000 if quick else N_TRAIN]
    test = load_dataset(name, "test")[: 60 if quick else N_TEST]

    def model_of(kind: str, added: Mapping[str, Any]) -> SITE | BlackBox:
        place = folder / _file_name(kind)
        return train_or_load(RECIPE, place, changes | dict(added), data=(train, test), progress=progress)

    plain = model_of(PAPER, {})
    table: dict[str, dict[str, Scores]] = {
        PAPER: {"without": _measured(plain, TransformFamily(), test, folder, PAPER, "without")}
    }
    trained: dict[str, SITE | BlackBox] = {}
    for kind, added in FAMILIES.items():
        family = TransformFamily.from_mapping(added)
        models = {"without": plain, "with": model_of(kind, added)}
        trained[kind] = models["with"]
        table[kind] = {
            how: _measured(model, family, test, folder, kind, how) for how, model in models.items()
        }
        table[kind]["with, paper's poses"] = _measured(
            models["with"], TransformFamily(), test, folder, kind, "with-plain"
        )
    weights = {PAPER: weights_of(plain)} | {kind: weights_of(model) for kind, model in trained.items()}
    training = {kind: training_seconds(folder / _file_name(kind)) for kind in (PAPER, *FAMILIES)}
    config = {
        "recipe": RECIPE,
        "settings": to_mapping(load_recipe(RECIPE).training) | changes,
        "families": {PAPER: str(TransformFamily())}
        | {kind: str(TransformFamily.from_mapping(added)) for kind, added in FAMILIES.items()},
        "n_train": len(train),
        "n_test": len(test),
        "weights": weights,
        "quick": quick,
    }
    values = {"table": table, "training": training}
    seconds = max(time.monotonic() - started, sum(training.values()))
    return save_result(Result("families", values, config, 0, seconds), folder)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """None: this result is a table."""
    return {}


def section(result: Result, pictures: Pictures) -> str:
    """Self-consistency and accuracy under each family, trained without and with it."""
    table: Mapping[str, Mapping[str, Scores]] = result.values["table"]
    rows = [
        [
            kind,
            TRAINED[how],
            score(found[how], "accuracy", "transformed"),
            *(score(found[how], "self_consistency", name) for name in CONSISTENCY),
        ]
        for kind, found in table.items()
        for how in TRAINED
        if how in found
    ]
    ranges = "\n".join(f"- {kind}: {text}" for kind, text in result.config["families"].items())
    minutes = sum(result.values["training"].values()) / 60
    return (
        "## Beyond turns and shifts, MNIST\n\n"
        f"{source(result)}\n\n"
        f"Each family adds one thing to the paper's poses; all are measured on {result.config['n_test']:,} "
        f"test pictures, two transforms each, with a model trained without the addition and with it "
        f"({result.config['n_train']:,} pictures, {result.config['settings']['epochs']} epochs; "
        f"{minutes:.0f} minutes of training in all).\n\n{ranges}\n\n"
        + markdown_table(
            ["measured under", "trained", "accuracy", *(f"consistency, {s}" for s in CONSISTENCY)], rows
        )
    )


def _measured(
    model: SITE | BlackBox, family: TransformFamily, test: Dataset, folder: Path, kind: str, how: str
) -> Scores:
    """Accuracy and the four scores of self-consistency under one family, found once."""
    config = {
        "weights": weights_of(model),
        "family": to_mapping(family),
        "pictures": fingerprint(test.images),
    }
    path = folder / "steps" / f"{_file_name(kind)}-{how}.json"
    return step(path, config, partial(_scores, model, family, test)).values


def _scores(model: SITE | BlackBox, family: TransformFamily, test: Dataset) -> Scores:
    values = evaluate(model, test, poses=Poses(family, 2)).values
    consistency = values["self_consistency"]
    return {
        "accuracy": values["accuracy"],
        "survives": values["prediction_equivariance"]["share"],
        "self_consistency": {name: consistency[name] for name in CONSISTENCY},
    }


def _file_name(kind: str) -> str:
    return kind.replace(" ", "_")
