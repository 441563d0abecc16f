"""The models that experiments are about: trained once, taken from their folder afterwards.

`train_or_load` gives the model of one recipe. `train_pair` gives SITE and the black box of a recipe side by
side; `pair_beside` is for experiments that only look at models: it takes the pair of the folder beside
theirs, else the pair that ships with the package, and trains only if there is neither.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.recipes import is_finished, load_recipe, train_or_load
from torchsite.data import Dataset, load_dataset
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import SITE, BlackBox, load, shipped_models
from torchsite.model.extractors import EXTRACTORS
from torchsite.results import Result
from torchsite.training.recipes import Recipe, override
from torchsite.training.run_folder import RUN_FILE

KINDS = ("site", "black_box")

# What makes any MNIST recipe a matter of seconds.
QUICK: Mapping[str, Any] = {"data": "mnist_sample", "epochs": 1, "cycles": 1, "batch_size": 500}
N_QUICK = {"train": 1000, "test": 200}
# In place of parts that start from ImageNet, which take no grey pictures.
FOR_DIGITS: Mapping[str, Any] = {
    "size": None,
    "model.feature_extractor": "pyramid",
    "model.extractor_options": {},
    "model.generator": "spatial",
}


def training_seconds(folder: Path) -> float:
    """How long the run in this folder trained."""
    return Result.load(folder / "result.json").seconds


def n_trained_on(folder: Path) -> int:
    """How many pictures the run in this folder was trained on."""
    return int(json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))["data"]["pictures"])


def learnt(folder: Path) -> dict[str, float]:
    """Steps, 10¹⁵ multiply-accumulates and views a picture of the run in this folder and those before it."""
    run = Result.load(folder / "result.json")
    training, budget = run.config["training"], run.config["budget"]
    steps = training["epochs"] * (n_trained_on(folder) // training["batch_size"])
    own = {"steps": steps, "pmac": budget["pmac"], "views": budget["views_per_picture"]}
    if not is_finished(folder / "begin"):
        return own
    before = learnt(folder / "begin")
    total = own["steps"] + before["steps"]
    seen = own["views"] * own["steps"] + before["views"] * before["steps"]
    return {"steps": total, "pmac": own["pmac"] + before["pmac"], "views": seen / total}


@dataclass(frozen=True, eq=False)
class Pair:
    """Two models of the same data, budget and poses, and the pictures they are tested on."""

    site: SITE
    black_box: BlackBox
    test: Dataset
    origin: str

    def __iter__(self) -> Iterator[tuple[str, SITE | BlackBox]]:
        return iter((("site", self.site), ("black_box", self.black_box)))

    def description(self) -> dict[str, object]:
        """What a result that was found on these models depends on, as plain data."""
        weights = {kind: weights_of(model) for kind, model in self}
        return {"data": self.test.title, "n_test": len(self.test), "models": self.origin, "weights": weights}


def train_pair(recipe: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Pair:
    """Both models of a recipe, from `folder` where they are finished; quick ones see a few digits."""
    changes: dict[str, Any] = dict(QUICK) | {"batch_size": 100} if quick else {}
    described = load_recipe(recipe)
    if quick and getattr(EXTRACTORS.get(described.model.feature_extractor), "pretrained", False):
        changes |= FOR_DIGITS
    train, test = (_part(override(described, changes), split, quick) for split in ("train", "test"))
    of_kind = {"site": changes, "black_box": changes | {"model.kind": "black_box"}}
    models = [
        train_or_load(recipe, folder / kind, changes, data=(train, test), staged=not quick, progress=progress)
        for kind, changes in of_kind.items()
    ]
    return _pair(models, test, "quick" if quick else "trained")


def pair_beside(recipe: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Pair:
    """The models of the experiment `recipe`, which stand in the folder beside this one, or ship."""
    place = folder.with_name(f"{recipe}-quick" if quick else recipe)
    names = (recipe, f"{recipe}_black_box")
    done = all(is_finished(place / kind) for kind in KINDS)
    if quick or done or not all(name in shipped_models() for name in names):
        return train_pair(recipe, place, quick=quick, progress=progress)
    return _pair([load(name) for name in names], _part(load_recipe(recipe), "test", False), "shipped")


def _part(recipe: Recipe, split: str, quick: bool) -> Dataset:
    data = load_dataset(recipe.data, split, size=recipe.size)
    return data[: N_QUICK[split]] if quick else data


def _pair(models: list[Any], test: Dataset, origin: str) -> Pair:
    site, black_box = models
    assert isinstance(site, SITE)
    assert isinstance(black_box, BlackBox)
    return Pair(site, black_box, test, origin)
