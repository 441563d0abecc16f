"""A recipe carried out: what it begins with, where that is another recipe's model, is trained first."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchsite.data import Dataset, load_dataset
from torchsite.model import SITE, BlackBox, load_classifier
from torchsite.training.fit import Fitted, fit
from torchsite.training.recipes import Recipe, begin_model, load_recipe, override, shipped_recipes


def fit_recipe(
    recipe: Recipe,
    data: Dataset,
    *,
    validation: Dataset,
    folder: Path,
    resume: bool = False,
    **options: Any,
) -> Fitted[SITE | BlackBox]:
    """Train the model of a recipe in `folder`; a recipe before it leaves its run in `folder`/begin.

    `options` are those of `fit`. What is finished there is not trained again.
    """
    if recipe.begin in shipped_recipes() and not Path(recipe.begin).is_dir():
        before = folder / "begin"
        if not is_finished(before):
            first = override(load_recipe(recipe.begin), {"model.kind": recipe.model.kind})
            fit_recipe(first, data, validation=validation, folder=before, resume=True, **options)
        recipe = replace(recipe, begin=str(before / "model"))
    model = begin_model(recipe, data)
    return fit(model, data, recipe.training, validation=validation, folder=folder, resume=resume, **options)


def is_finished(folder: Path) -> bool:
    """Whether a run in this folder came to its end."""
    return (folder / "model" / "config.json").is_file() and (folder / "result.json").is_file()


def train_or_load(
    recipe: str | Recipe,
    folder: Path,
    changes: Mapping[str, Any] | None = None,
    *,
    data: tuple[Dataset, Dataset] | None = None,
    progress: bool = False,
) -> SITE | BlackBox:
    """The model that a recipe gives; a finished run in `folder` is loaded, an interrupted one goes on."""
    if is_finished(folder):
        return load_finished(folder)
    chosen = override(recipe if isinstance(recipe, Recipe) else load_recipe(recipe), changes or {})
    train, test = data or (load_dataset(chosen.data, "train"), load_dataset(chosen.data, "test"))
    return fit_recipe(chosen, train, validation=test, folder=folder, resume=True, progress=progress).model


def load_finished(folder: Path) -> SITE | BlackBox:
    """The model that a finished run left in its folder."""
    return load_classifier(folder / "model")
