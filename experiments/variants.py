"""Variants of one recipe side by side: targets of the transformation loss, forms of the generator.

Claim:    `targets="nearest"` makes prototypes that an independent classifier recognises, at no cost in
          accuracy or consistency; a shared trunk with lateral sums and light heads learns faster than
          a trunk without, and than per-class decoders.
Command:  torchsite reproduce targets | targets_fashion | generators
Cost:     six epochs of 12,000 pictures for each variant, about a minute and a half on two cores.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from experiments.accuracy import MEASURES
from experiments.cache import save_result
from experiments.models import N_QUICK, QUICK
from experiments.recipes import load_recipe, train_or_load
from experiments.registry import Arrays
from experiments.section import Pictures
from experiments.shown import pose_of
from torchsite.data import CATALOGUE, Dataset, load_dataset, to_float
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import SITE, BlackBox
from torchsite.model.blocks import n_parameters
from torchsite.model.drawing import new_figure, prototype_pictures, show_picture
from torchsite.report.format import markdown_table, score_rows
from torchsite.results import Result
from torchsite.shapes import Images, Prototypes


@dataclass(frozen=True)
class Study:
    """One recipe, what all variants change, and what each changes."""

    title: str
    recipe: str
    variants: Mapping[str, Mapping[str, Any]]
    common: Mapping[str, Any] = field(default_factory=lambda: {"epochs": 6, "validate_every": 6})
    n_pictures: int = 12_000


_TARGETS = {kind: {"terms.transformation.targets": kind} for kind in ("mean", "nearest")}
_GENERATORS: Mapping[str, Mapping[str, Any]] = {
    "lateral": {},
    "trunk": {"model.generator": "trunk"},
    "shuffle": {"model.generator": "shuffle", "model.generator_options": {"widths": [24, 48, 96]}},
    "transposed": {"model.generator": "transposed", "model.generator_options": {"widths": [24, 48, 96]}},
    "dense": {"model.generator": "dense", "model.generator_options": {"widths": [24, 48, 96]}},
}
STUDIES: Mapping[str, Study] = {
    "targets": Study("Targets of the transformation loss, MNIST", "mnist_first", _TARGETS),
    "targets_fashion": Study(
        "Targets of the transformation loss, Fashion-MNIST", "fashion_mnist_first", _TARGETS
    ),
    "generators": Study("Forms of the generator", "mnist_first", _GENERATORS),
}


def run(name: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train and measure every variant; finished ones are taken from `folder`."""
    started = time.monotonic()
    study = STUDIES[name]
    common = dict(study.common) | (dict(QUICK) if quick else {})
    name_of_data = common.get("data", load_recipe(study.recipe).data)
    test = load_dataset(name_of_data, "test")[: N_QUICK["test"] if quick else None]
    data = load_dataset(name_of_data, "train")[: N_QUICK["train"] if quick else study.n_pictures], test
    as_judge = common | {"model.kind": "black_box"}
    judge = train_or_load(study.recipe, folder / "judge", as_judge, data=data, progress=progress)
    assert isinstance(judge, BlackBox)
    values: dict[str, Mapping[str, Any]] = {}
    weights = {"judge": weights_of(judge)}
    arrays: dict[str, Tensor] = {}
    for variant, changes in study.variants.items():
        place = folder / variant
        model = train_or_load(study.recipe, place, common | dict(changes), data=data, progress=progress)
        measured = evaluate(model, test, judge=judge, limit=100 if quick else 2000)
        assert isinstance(model, SITE)
        weights[variant] = weights_of(model)
        arrays["pictures"], arrays[variant] = prototypes_of(model, test)
        training = Result.load(place / "result.json")
        values[variant] = {
            "parameters": n_parameters(model),
            "training seconds": training.seconds,
            "transformation loss": training.values.get("transformation"),
            **measured.values,
        }
    config: dict[str, Any] = {
        "recipe": study.recipe,
        "common": common,
        "n_pictures": study.n_pictures,
        "quick": quick,
    }
    config["weights"] = weights
    return save_result(Result(name, values, config, 0, time.monotonic() - started), folder, arrays)


def prototypes_of(model: SITE, test: Dataset) -> tuple[Images, Prototypes]:
    """The first test picture as it is and moved, and the prototypes of all classes for both."""
    image = to_float(test.images[:1])
    pictures = torch.cat([image, pose_of(model, torch.zeros(1, dtype=torch.int64))(image)])
    return pictures, model.explain(pictures).prototypes


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """What each variant draws for one picture, as it is and moved: the prototypes of all classes."""
    if not arrays:
        return {}
    lines = [
        (f"{variant}, {pose}", arrays["pictures"][row], prototype_pictures(arrays[variant][row]))
        for variant in result.values
        for row, pose in enumerate(("as it is", "moved"))
    ]
    classes = CATALOGUE[load_recipe(result.config["recipe"]).data].classes
    figure, grid = new_figure(len(lines), 1 + len(classes), 0.9)
    for (first, *others), (title, picture, prototypes) in zip(grid, lines, strict=True):
        show_picture(first, picture, title)
        for name, axes, prototype in zip(classes, others, prototypes, strict=True):
            show_picture(axes, prototype, name if axes in grid[0] else "")
    return {result.name: figure}


def section(result: Result, pictures: Pictures) -> str:
    """The measures of all variants side by side, and the prototypes that they draw."""
    variants, config = result.values, result.config
    rows = score_rows(MEASURES, list(variants.values()))
    rows.append(["parameters", *(f"{v['parameters']:,}" for v in variants.values())])
    rows.append(["training, minutes", *(f"{v['training seconds'] / 60:.1f}" for v in variants.values())])
    settings = ", ".join(f"{key} {value}" for key, value in config["common"].items())
    said = "\nThe first test picture as it is and moved, and the prototypes of all classes for it:\n"
    sheet = pictures.sheet(result.name, "Prototypes of all classes, variant by variant")
    return (
        f"## {STUDIES[result.name].title}\n\n"
        f"`torchsite reproduce {result.name} --publish` → `results/{result.name}.json` "
        f"({config['recipe']}, first {config['n_pictures']:,} training pictures, {settings}; "
        f"measured on the first 2,000 test pictures; {result.time})\n\n"
        + markdown_table(["", *variants], rows)
        + (said + sheet if sheet else "")
    )
