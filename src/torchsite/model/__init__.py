"""Models: SITE, its parts, the black box beside it, and weights that come and go as safetensors."""

from pathlib import Path
from typing import Any

from torchsite.errors import NotApplicableError
from torchsite.model.base import ImageClassifier
from torchsite.model.black_box import BlackBox
from torchsite.model.classifier_front import ClassifierFront
from torchsite.model.config import BlackBoxConfig, ModelConfig, SiteConfig
from torchsite.model.explanation import Explanation
from torchsite.model.extractor import FeatureExtractor, ParameterGroup
from torchsite.model.extractors import EXTRACTORS
from torchsite.model.generators import GENERATORS
from torchsite.model.pretrained import (
    HUB_OPTIONS,
    Pretrained,
    find_weights,
    read_config,
    save_weights,
    shipped_models,
)
from torchsite.model.site import SITE

# Kinds of models from outside add theirs.
KINDS: dict[str, type[Pretrained]] = {
    "site": SITE,
    "black_box": BlackBox,
}


def list_models() -> list[str]:
    """The names of the models that come with the package."""
    return sorted(shipped_models())


def load(name: Path | str, **options: Any) -> Pretrained:
    """Any saved model, of whichever kind: a shipped name, a folder, or a hub id.

    Fails with `WeightsError` if there is none, or if its files are damaged or do not fit together.
    """
    hub = {key: options.pop(key) for key in HUB_OPTIONS if key in options}
    folder = find_weights(name, **hub)
    return KINDS[read_config(folder).kind].from_pretrained(folder, **options)


def load_classifier(name: Path | str, **options: Any) -> SITE | BlackBox:
    """A saved SITE model or black box; any other kind of model is an error."""
    found = load(name, **options)
    if not isinstance(found, SITE | BlackBox):
        raise NotApplicableError(
            f"{str(name)!r} is a model of the kind {found.config.kind!r}, expected a SITE model or a black "
            "box: use it from Python, with torchsite.model.load"
        )
    return found


__all__ = [
    "EXTRACTORS",
    "GENERATORS",
    "SITE",
    "BlackBox",
    "BlackBoxConfig",
    "ClassifierFront",
    "Explanation",
    "FeatureExtractor",
    "ImageClassifier",
    "ModelConfig",
    "ParameterGroup",
    "SiteConfig",
    "list_models",
    "load",
    "load_classifier",
    "save_weights",
    "shipped_models",
]
