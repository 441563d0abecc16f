"""Trained models as cached steps: an experiment asks for one, and trains it only if it is not there yet."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchsite.data import Dataset, load_dataset
from torchsite.model import SITE, BlackBox, load
from torchsite.training import fit
from torchsite.training.recipes import Recipe, build_model, load_recipe, override

# What makes any MNIST recipe a matter of seconds.
QUICK: Mapping[str, Any] = {"data": "mnist_sample", "epochs": 1, "cycles": 1, "batch_size": 500}


def trained(
    recipe: str | Recipe,
    folder: Path,
    changes: Mapping[str, Any] | None = None,
    *,
    data: tuple[Dataset, Dataset] | None = None,
    progress: bool = False,
) -> SITE | BlackBox:
    """The model that a recipe gives; a finished run in `folder` is loaded, an interrupted one goes on."""
    if finished(folder):
        return load_finished(folder)
    chosen = override(recipe if isinstance(recipe, Recipe) else load_recipe(recipe), changes or {})
    train, test = data or (load_dataset(chosen.data, "train"), load_dataset(chosen.data, "test"))
    model = build_model(chosen.model, train, chosen.training)
    return fit(
        model, train, chosen.training, validation=test, folder=folder, resume=True, progress=progress
    ).model


def finished(folder: Path) -> bool:
    """Whether a run in this folder came to its end."""
    return (folder / "model" / "config.json").is_file() and (folder / "result.json").is_file()


def load_finished(folder: Path) -> SITE | BlackBox:
    """The model that a finished run left in its folder."""
    found = load(folder / "model")
    assert isinstance(found, SITE | BlackBox)
    return found
