"""Recipes: a model and its one training as a small YAML file, every field of which can be overridden.

    data: mnist
    model: {feature_extractor: identity, generator: lateral}
    training: {epochs: 16, terms: [{name: transformation, targets: nearest}]}

Overrides name a field of the training (`epochs`), or any field by its path (`model.generator`); a term is
found by its name (`terms.transformation.weight`) or, where two have the same, by its number (`terms.1.end`).
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import torch
import yaml

from torchsite.configs import from_mapping, to_mapping
from torchsite.data import Dataset
from torchsite.errors import ConfigError, did_you_mean
from torchsite.model import SITE, BlackBox
from torchsite.model.config import SiteArchitecture
from torchsite.model.extractors import build_extractor
from torchsite.objective import IgnoredRegions
from torchsite.training.config import TrainingConfig
from torchsite.transforms import TransformFamily

ENOUGH_VALUES = 2**25
# Fields of earlier versions and what they held when they did nothing: their recipes and runs can go on.
GONE: Mapping[str, Any] = {
    "begin": "",
    "begin_with": "all",
    "ema": 0.0,
    "ema_decay": 0.0,
    "mean_decay": 0.99,
    "n_classes": None,
}


@dataclass(frozen=True, kw_only=True)
class ModelSettings(SiteArchitecture):
    """Which model to build; shapes, classes and normalisation come from the data.

    A `black_box` is the one beside the SITE model that the other settings describe.
    """

    kind: Literal["site", "black_box"] = "site"


@dataclass(frozen=True)
class Recipe:
    """All settings of `torchsite train`; `size` is that of the pictures, if not their own.

    `margin` is how many times larger the pictures of a folder are kept than they are seen. `ignore` are files
    of regions of the training pictures, or groups of audits as `audit.json:3`, for the term
    `ignored_regions`.
    """

    data: str = "mnist_sample"
    size: int | None = None
    margin: float = 1.0
    ignore: tuple[str, ...] = ()
    model: ModelSettings = field(default_factory=ModelSettings)
    training: TrainingConfig = field(default_factory=TrainingConfig)


def shipped_recipes() -> dict[str, Path]:
    """The recipes that come with the package, by name."""
    root = Path(str(resources.files("torchsite"))) / "recipes"
    return {path.stem: path for path in sorted(root.glob("*.yaml"))}


def load_recipe(name: Path | str) -> Recipe:
    """A shipped recipe by name, or a YAML file."""
    known = shipped_recipes()
    path = known.get(str(name), Path(name))
    if not path.is_file():
        raise ConfigError(
            f"no recipe {str(name)!r}, neither shipped nor a file: {did_you_mean(str(name), known)}"
        )
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: bytes, dates, huge numbers
        raise ConfigError(f"{path} is not a YAML file: {error}") from error
    return from_mapping(Recipe, {} if values is None else without_gone(values))


def without_gone(values: Any, depth: int = 4) -> Any:
    """Fields that there are no more are left out where they did nothing; elsewhere they stay unknown.

    They are looked for in the recipe, its training, and the terms of that; files may be nested without end.
    """
    if not depth or not isinstance(values, list | Mapping):
        return values
    if isinstance(values, list):
        return [without_gone(value, depth - 1) for value in values]
    kept = {name: value for name, value in values.items() if name not in GONE or value != GONE[name]}
    return {name: without_gone(value, depth - 1) for name, value in kept.items()}


def override(recipe: Recipe, values: Mapping[str, Any]) -> Recipe:
    """The recipe with some fields replaced; a bare name is a field of the training or of its family."""
    plain = to_mapping(recipe)
    for name, value in values.items():
        *path, last = _path(name)
        for place in _places(plain, path, name):
            place[last] = copy.deepcopy(value)  # later ones may name a field inside it
    return from_mapping(Recipe, plain)


def ignoring(recipe: Recipe, sources: Sequence[str]) -> Recipe:
    """The recipe with regions to ignore, and with the term that asks for no evidence inside them."""
    terms = recipe.training.terms
    if not sources or any(isinstance(term, IgnoredRegions) for term in terms):
        return replace(recipe, ignore=tuple(sources) or recipe.ignore)
    training = replace(recipe.training, terms=(*terms, IgnoredRegions()))
    return replace(recipe, ignore=tuple(sources), training=training)


def _places(place: Any, path: list[str], name: str) -> list[dict[str, Any]]:
    """The groups of fields that a path leads to: one, or all terms of a name."""
    if isinstance(place, list):
        return _places_among(place, path, name)
    if not path:
        return [place]
    step, *rest = path
    place = place.setdefault(step, {})
    if not isinstance(place, dict | list):
        raise ConfigError(f"no field {name!r}: {step!r} is a value, not a group of fields")
    return _places(place, rest, name)


def _places_among(values: list[Any], path: list[str], name: str) -> list[dict[str, Any]]:
    named = [(str(i), value) for i, value in enumerate(values) if isinstance(value, dict)]
    chosen = [value for i, value in named if path and path[0] in (i, value.get("name"))]
    if not chosen:
        there = ", ".join(f"{i} ({value.get('name')})" for i, value in named) or "none"
        raise ConfigError(f"no field {name!r}: expected one of what is there: {there}")
    return [found for value in chosen for found in _places(value, path[1:], name)]


def build_model(settings: ModelSettings, data: Dataset, config: TrainingConfig) -> SITE | BlackBox:
    """The model for this data, its weights drawn from the seed of the training."""
    channels, height, width = data.images.shape[1:]
    given: dict[str, Any] = {
        "image_shape": (channels, height, width),
        "classes": data.classes,
        "family": config.family,
        "multi_label": data.multi_hot is not None,
        "margin": data.margin,
    }
    with torch.random.fork_rng(devices=[]):
        with torch.device("meta"):
            extractor = build_extractor(
                settings.feature_extractor, given["image_shape"], settings.extractor_options
            )
        if extractor.mean is None:
            given |= dict(zip(("mean", "std"), pixel_statistics(data), strict=True))
        torch.default_generator.manual_seed(config.seed)
        if settings.kind == "black_box":
            return BlackBox.beside(settings, **given)
        described = {name: value for name, value in to_mapping(settings).items() if name != "kind"}
        return SITE(**described | given)


def pixel_statistics(data: Dataset, n: int = 10_000) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel, from at most `n` pictures spread over the set."""
    n = max(2, min(n, ENOUGH_VALUES // data.images[0].numel()))
    step = max(1, len(data) // n)
    pixels = data.images[::step].double() / 255
    return pixels.mean((0, 2, 3)).tolist(), pixels.std((0, 2, 3)).clamp_min(1e-3).tolist()


def _path(name: str) -> list[str]:
    """`epochs` is short for `training.epochs`, `max_shift` for `training.family.max_shift`."""
    steps = name.replace("-", "_").split(".")
    of_training = steps[0] in {f.name for f in fields(TrainingConfig)}
    if steps[0] in {f.name for f in fields(Recipe)} or (len(steps) > 1 and not of_training):
        return steps
    if steps[0] in {f.name for f in fields(TransformFamily)}:
        return ["training", "family", *steps]
    return ["training", *steps]
