"""A recipe carried out: what it begins with, where that is another recipe's model, is trained first."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from torchsite.data import Dataset
from torchsite.model import SITE, BlackBox
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
