"""Ten classes of Food-101 at 128 × 128 pixels, on features that know ImageNet.

Claim:    two hundred pictures of a class are few. On a pretrained extractor SITE keeps up with the black box.
Command:  torchsite reproduce food10
Cost:     two trainings, half an hour of one core; less than a minute with --quick, on painted pictures.
"""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.bam.data import painted_halves
from experiments.bam.models import QUICK as OF_PAINTED
from experiments.cache import save_result, step
from experiments.models import KINDS, training_seconds
from experiments.recipes import load_recipe, train_or_load
from experiments.registry import Arrays
from experiments.section import Pictures, source
from experiments.shown import explained, first_right, predictions, sheet_of
from experiments.tables import CONSISTENCY
from torchsite.data import Dataset, load_dataset
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import fingerprint, weights_of
from torchsite.model.blocks import n_parameters
from torchsite.report.format import HEADLINES, markdown_table, score_rows
from torchsite.results import Result

RECIPE, START = "food10", "from ImageNet"
QUICK = {name: value for name, value in OF_PAINTED.items() if name.startswith("model")} | {
    "batch_size": 16,
    "epochs": 1,
    "validate_every": 1,
}
WORDS = """{n_train:,} pictures to train on, {n_test:,} to test with. From ImageNet with EfficientNet-Lite \
(`torchsite[pretrained]`). {nothing}The paper's figures, 0.6391 for SITE and 0.6404 for the black box, are \
of all 101 classes and 75,750 pictures. A sheet of explanations is in the folder of the run.\n
"""
# Of the first file alone, which has two models more.
NOTHING = (
    "From nothing with ResNet-18, the paper's extractor, asked for maps that follow and not for true ones. "
)


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train both models (or take them from `folder`), measure them, keep a sheet."""
    started = time.monotonic()
    train, test = _halves(quick, progress)
    models: dict[str, Any] = {}
    values: dict[str, Any] = {"models": {}}
    for kind in KINDS:
        place, changes = folder / f"{kind}-imagenet", (QUICK if quick else {}) | {"model.kind": kind}
        models[kind] = train_or_load(RECIPE, place, changes, data=(train, test), progress=progress)
        config = {"weights": weights_of(models[kind]), "pictures": fingerprint(test.images)}
        find = partial(_scores, models[kind], test)
        found = step(folder / "steps" / f"{kind}-imagenet.json", config, find).values
        values["models"][f"{kind}, {START}"] = {**found, "training seconds": training_seconds(place)}
    rows = first_right(predictions(models["site"], test, 50), test, range(len(test.classes)), 1)
    values["pictures"], arrays = explained(models["site"], test, rows)
    description = {
        "recipe": RECIPE,
        "n_train": len(train),
        "n_test": len(test),
        "size": int(test.images.shape[-1]),
        "classes": list(test.classes),
        "quick": quick,
        "weights": {f"{kind}, {START}": weights_of(model) for kind, model in models.items()},
    }
    trained = sum(found["training seconds"] for found in values["models"].values())
    seconds = max(trained, time.monotonic() - started)
    return save_result(Result("food10", values, description, 0, seconds), folder, arrays)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """A picture of each class as it is and moved, their explanations laid over them."""
    return sheet_of(result, arrays)


def section(result: Result, pictures: Pictures) -> str:
    """Accuracy and self-consistency of SITE and the black box."""
    del pictures
    models: Mapping[str, Any] = result.values["models"]
    config, every = result.config, list(models.values())
    rows = score_rows(HEADLINES, every)
    rows.append(["parameters", *(f"{found['parameters']:,}" for found in every)])
    rows.append(["training, minutes", *(f"{found['training seconds'] / 60:.1f}" for found in every)])
    return (
        f"## Food-101: {len(config['classes'])} classes at {config['size']} × {config['size']} pixels\n\n"
        f"{source(result)}\n\n"
        + WORDS.format(
            n_train=config["n_train"],
            n_test=config["n_test"],
            nothing=NOTHING if "starts" in config else "",
        )
        + markdown_table(["", *(name.replace("_", " ").replace("site", "SITE") for name in models)], rows)
    )


def _scores(model: Any, test: Dataset) -> dict[str, Any]:
    values = dict(evaluate(model, test, batch_size=50).values)
    values["prediction_equivariance"] = {"share": values["prediction_equivariance"]["share"]}
    if "self_consistency" in values:
        values["self_consistency"] = {name: values["self_consistency"][name] for name in CONSISTENCY}
    return values | {"parameters": n_parameters(model)}


def _halves(quick: bool, progress: bool) -> tuple[Dataset, Dataset]:
    if quick:
        painted = painted_halves()
        return painted.train.labelled("object"), painted.test.labelled("object")
    size = load_recipe(RECIPE).size
    train, test = (load_dataset(RECIPE, half, size=size, progress=progress) for half in ("train", "test"))
    return train, test
