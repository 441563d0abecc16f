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
from torch import Tensor

from torchsite.data import Dataset, load_dataset, to_float
from torchsite.evaluation.evaluate import evaluate
from torchsite.model import SITE, BlackBox
from torchsite.model.blocks import n_parameters
from torchsite.paper.arrays import save_arrays
from torchsite.paper.runs import QUICK, trained
from torchsite.paper.shown import pose_of
from torchsite.results import Result
from torchsite.shapes import Images, Prototypes


@dataclass(frozen=True)
class Study:
    """One recipe, what all variants change, and what each changes."""

    recipe: str
    variants: Mapping[str, Mapping[str, Any]]
    common: Mapping[str, Any] = field(default_factory=lambda: {"epochs": 6, "validate_every": 6})
    n_pictures: int = 12_000


_TARGETS = {kind: {"targets": kind} for kind in ("mean", "nearest")}
_GENERATORS: Mapping[str, Mapping[str, Any]] = {
    "lateral": {},
    "trunk": {"model.generator": "trunk"},
    "shuffle": {"model.generator": "shuffle", "model.generator_options": {"widths": [24, 48, 96]}},
    "transposed": {"model.generator": "transposed", "model.generator_options": {"widths": [24, 48, 96]}},
    "dense": {"model.generator": "dense", "model.generator_options": {"widths": [24, 48, 96]}},
}
STUDIES: Mapping[str, Study] = {
    "targets": Study("mnist", _TARGETS),
    "targets_fashion": Study("fashion_mnist", _TARGETS),
    "generators": Study("mnist", _GENERATORS),
}


def run(name: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train and measure every variant; finished ones are taken from `folder`."""
    started = time.monotonic()
    study = STUDIES[name]
    common = dict(study.common) | (dict(QUICK) if quick else {})
    name_of_data = common.get("data", study.recipe)
    test = load_dataset(name_of_data, "test")
    data = load_dataset(name_of_data, "train")[: study.n_pictures], test
    as_judge = common | {"model.kind": "black_box"}
    judge = trained(study.recipe, folder / "judge", as_judge, data=data, progress=progress)
    assert isinstance(judge, BlackBox)
    values: dict[str, Any] = {}
    arrays: dict[str, Tensor] = {}
    for variant, changes in study.variants.items():
        place = folder / variant
        model = trained(study.recipe, place, common | dict(changes), data=data, progress=progress)
        measured = evaluate(model, test, judge=judge, limit=100 if quick else 2000)
        assert isinstance(model, SITE)
        arrays["pictures"], arrays[variant] = prototypes_of(model, test)
        training = Result.load(place / "result.json")
        values[variant] = {
            "parameters": n_parameters(model),
            "training seconds": training.seconds,
            "transformation loss": training.values.get("transformation"),
            **measured.values,
        }
    config = {"recipe": study.recipe, "common": common, "n_pictures": study.n_pictures, "quick": quick}
    result = Result(name, values, config, 0, time.monotonic() - started)
    save_arrays(folder / f"{name}.npz", arrays)
    result.save(folder / f"{name}.json")
    return result


def prototypes_of(model: SITE, test: Dataset) -> tuple[Images, Prototypes]:
    """The first test picture as it is and moved, and the prototypes of all classes for both."""
    image = to_float(test.images[:1])
    pictures = torch.cat([image, pose_of(model, torch.zeros(1, dtype=torch.int64))(image)])
    return pictures, model.explain(pictures).prototypes
