"""The recipes of our studies and of the weights that ship, and trainings that come in stages.

A recipe describes one training. The weights that ship were trained in stages: `STAGES` names the recipe whose
weights another went on from. `train_or_load` trains that one first, in the folder `begin` of the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torchsite.data import Dataset, load_dataset
from torchsite.errors import ConfigError
from torchsite.model import SITE, BlackBox, load_classifier
from torchsite.training import fit
from torchsite.training import recipes as shipped
from torchsite.training.recipes import Recipe, build_model, override

ENCODING = ("feature_extractor.", "generator.encoder.", "encoder.")  # of SITE and of the black box alike


@dataclass(frozen=True)
class Stage:
    """The recipe of the stage before, and which of its weights are taken; the others are drawn anew."""

    before: str
    takes: Literal["all", "encoder"] = "all"


STAGES: Mapping[str, Stage] = {
    "mnist": Stage("mnist_drawn"),
    "mnist_drawn": Stage("mnist_first", "encoder"),
    "fashion_mnist": Stage("fashion_mnist_drawn"),
    "fashion_mnist_drawn": Stage("fashion_mnist_first", "encoder"),
    "cifar10": Stage("cifar10_additive"),
    "cifar10_additive": Stage("cifar10_first"),
}


def known_recipes() -> dict[str, Path]:
    """Every recipe by name: those that ship, and in their place those of this folder."""
    own = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}
    return shipped.shipped_recipes() | own


def load_recipe(name: str) -> Recipe:
    """A recipe of this folder, one that ships, or a YAML file."""
    return shipped.load_recipe(known_recipes().get(name, name))


def stages_of(name: str) -> tuple[str, ...]:
    """The recipes that lead to the weights of a recipe, in their order; it is the last."""
    return (*(stages_of(STAGES[name].before) if name in STAGES else ()), name)


def train_or_load(
    recipe: str | Recipe,
    folder: Path,
    changes: Mapping[str, Any] | None = None,
    *,
    data: tuple[Dataset, Dataset] | None = None,
    staged: bool = True,
    progress: bool = False,
) -> SITE | BlackBox:
    """The model of a recipe; a finished run in `folder` is loaded, an interrupted one goes on.

    `changes` are fields of the recipe; of the stages before it only the kind of model changes. Without
    `staged` there are none before it.
    """
    if is_finished(folder):
        return load_finished(folder)
    chosen = override(load_recipe(recipe) if isinstance(recipe, str) else recipe, changes or {})
    train, test = data or (load_dataset(chosen.data, "train"), load_dataset(chosen.data, "test"))
    model = build_model(chosen.model, train, chosen.training)
    stage = STAGES.get(recipe) if staged and isinstance(recipe, str) else None
    if stage is not None:
        kind = {"model.kind": chosen.model.kind}
        before = train_or_load(stage.before, folder / "begin", kind, data=(train, test), progress=progress)
        take_weights(model, before, stage.takes)
    options: dict[str, Any] = {"validation": test, "folder": folder, "resume": True, "progress": progress}
    return fit(model, train, chosen.training, **options).model


def take_weights(
    model: SITE | BlackBox, before: SITE | BlackBox, takes: Literal["all", "encoder"] = "all"
) -> None:
    """Put the weights of another model into this one: all, or those of extractor and encoder alone."""
    old, new = before.state_dict(), model.state_dict()
    taken = [name for name in new if takes == "all" or name.startswith(ENCODING)]
    strangers = [name for name in old if takes == "all" and name not in new]
    unlike = [name for name in taken if name not in old or old[name].shape != new[name].shape]
    if type(before) is not type(model) or strangers or unlike:
        raise ConfigError(
            f"expected the weights of a {type(model).__name__} of this shape, "
            f"got those of another {type(before).__name__}"
        )
    model.load_state_dict(new | {name: old[name] for name in taken})


def is_finished(folder: Path) -> bool:
    """Whether a run in this folder came to its end."""
    return (folder / "model" / "config.json").is_file() and (folder / "result.json").is_file()


def load_finished(folder: Path) -> SITE | BlackBox:
    """The model that a finished run left in its folder."""
    return load_classifier(folder / "model")
