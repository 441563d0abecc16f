"""Models: SITE, its parts, the black box beside it, and weights that come and go as safetensors."""

from pathlib import Path
from typing import Any

from torchsite.model.b_cos import BCos
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
from torchsite.model.prototype_parts import PrototypeParts
from torchsite.model.site import SITE

KINDS: dict[str, type[Pretrained]] = {
    "site": SITE,
    "black_box": BlackBox,
    "b_cos": BCos,
    "prototype_parts": PrototypeParts,
}


def load(name: Path | str, **options: Any) -> Pretrained:
    """Any saved model, of whichever kind: a shipped name, a folder, or a hub id."""
    hub = {key: options.pop(key) for key in HUB_OPTIONS if key in options}
    folder = find_weights(name, **hub)
    return KINDS[read_config(folder).kind].from_pretrained(folder, **options)


__all__ = [
    "EXTRACTORS",
    "GENERATORS",
    "SITE",
    "BCos",
    "BlackBox",
    "BlackBoxConfig",
    "ClassifierFront",
    "Explanation",
    "FeatureExtractor",
    "ImageClassifier",
    "ModelConfig",
    "ParameterGroup",
    "PrototypeParts",
    "SiteConfig",
    "load",
    "save_weights",
    "shipped_models",
]
