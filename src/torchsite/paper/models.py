"""SITE and the black box of one recipe, side by side: what most experiments are about.

`train_pair` takes a finished pair from its folder or trains it; `pair_beside` is for experiments that only
look at models: it takes the pair of the folder beside theirs, else the pair that ships with the package, and
trains only if there is neither.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchsite.data import Dataset, load_dataset
from torchsite.evaluation.fingerprints import fingerprint
from torchsite.model import SITE, BlackBox, load, shipped_models
from torchsite.paper.runs import QUICK, finished, trained
from torchsite.training.recipes import load_recipe

N_QUICK = {"train": 1000, "test": 200}


@dataclass(frozen=True, eq=False)
class Pair:
    """Two models of the same data, budget and poses, and the pictures they are tested on."""

    site: SITE
    black_box: BlackBox
    test: Dataset
    origin: str

    def __iter__(self) -> Iterator[tuple[str, SITE | BlackBox]]:
        return iter((("site", self.site), ("black_box", self.black_box)))

    def description(self) -> dict[str, Any]:
        """What a result that was found on these models depends on, as plain data."""
        weights = {kind: fingerprint(*model.state_dict().values()) for kind, model in self}
        return {"data": self.test.title, "n_test": len(self.test), "models": self.origin, "weights": weights}


def train_pair(recipe: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Pair:
    """Both models of a recipe, from `folder` where they are finished; quick ones see a few digits."""
    changes: dict[str, Any] = dict(QUICK) | {"batch_size": 100} if quick else {}
    name = changes.get("data", load_recipe(recipe).data)
    train, test = (_part(name, split, quick) for split in ("train", "test"))
    kinds = {"site": changes, "black_box": changes | {"model.kind": "black_box"}}
    models = [
        trained(recipe, folder / kind, changes, data=(train, test), progress=progress)
        for kind, changes in kinds.items()
    ]
    return _pair(models, test, "quick" if quick else "trained")


def pair_beside(recipe: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Pair:
    """The models of the experiment `recipe`, which stand in the folder beside this one, or ship."""
    place = folder.with_name(f"{recipe}-quick" if quick else recipe)
    names = (recipe, f"{recipe}_black_box")
    done = all(finished(place / kind) for kind in ("site", "black_box"))
    if quick or done or not all(name in shipped_models() for name in names):
        return train_pair(recipe, place, quick=quick, progress=progress)
    return _pair([load(name) for name in names], _part(load_recipe(recipe).data, "test", False), "shipped")


def _part(name: str, split: str, quick: bool) -> Dataset:
    data = load_dataset(name, split)
    return data[: N_QUICK[split]] if quick else data


def _pair(models: list[Any], test: Dataset, origin: str) -> Pair:
    site, black_box = models
    assert isinstance(site, SITE)
    assert isinstance(black_box, BlackBox)
    return Pair(site, black_box, test, origin)
