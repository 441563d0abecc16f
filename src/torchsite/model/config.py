"""All that is needed to build a model again: the `config.json` beside its weights.

A model is built from its configuration. An option is declared here, once, and read where it is used; the
constructors, recipes and weight files take it from here.

| class | holds |
|---|---|
| Architecture | the kind of model and its feature extractor |
| SiteArchitecture | SITE's own options: all that a recipe can choose |
| ModelConfig | an architecture with its pictures, classes, normalisation and poses |
| SiteConfig, BlackBoxConfig | the two kinds of configuration that there are |
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeVar

from torch import nn

from torchsite.configs import from_mapping
from torchsite.data.margins import check_margin
from torchsite.data.request import MAX_SIDE
from torchsite.errors import ConfigError
from torchsite.transforms import TransformFamily
from torchsite.version import __version__

CUSTOM = "custom"
MAX_VALUES = 3 * MAX_SIDE**2
ACTIVATIONS: Mapping[str, type[nn.Module]] = {"sigmoid": nn.Sigmoid, "tanh": nn.Tanh}

Part = str | nn.Module
Config = TypeVar("Config", bound="ModelConfig")


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """What a model is made of, as far as all kinds of models share it."""

    kind: str
    feature_extractor: str = "pyramid"
    extractor_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for option in fields(self):  # JSON knows only lists: the same before and after a file compare equal
            value = getattr(self, option.name)
            if isinstance(value, dict):
                tuples = {name: tuple(v) if isinstance(v, list) else v for name, v in value.items()}
                object.__setattr__(self, option.name, tuples)


@dataclass(frozen=True, kw_only=True)
class SiteArchitecture(Architecture):
    """What a SITE model is made of; where an option is None, the feature extractor decides."""

    generator: str = "lateral"
    generator_options: dict[str, Any] = field(default_factory=dict)
    activation: str | None = None
    product_scale: float | None = None
    zero_sum: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.activation is not None and self.activation not in ACTIVATIONS:
            raise ConfigError(
                f"activation: expected one of {', '.join(ACTIVATIONS)}, got {self.activation!r}"
            )
        if self.product_scale is not None and not 0 < self.product_scale < math.inf:
            raise ConfigError(f"product_scale: expected a positive number, got {self.product_scale}")


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Architecture):
    """The configuration of a model: its pictures, classes, normalisation, poses and architecture."""

    TITLE: ClassVar[str] = "a model"
    PARTS: ClassVar[tuple[str, ...]] = ("feature_extractor",)  # what may be a module of the caller's own

    image_shape: tuple[int, int, int]
    classes: tuple[str, ...]
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    family: TransformFamily = field(default_factory=TransformFamily)
    multi_label: bool = False  # whether several classes may be true of a picture, or none
    margin: float = 1.0  # files are decoded so many times larger, and their centre is what the model sees
    version: str = __version__

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.image_shape) != 3 or min(self.image_shape) < 1:
            raise ConfigError(f"image_shape: expected (channels, height, width), got {self.image_shape}")
        if max(self.image_shape[1:]) > MAX_SIDE or math.prod(self.image_shape) > MAX_VALUES:
            raise ConfigError(
                f"image_shape: expected sides of at most {MAX_SIDE} and {MAX_VALUES:,} values, "
                f"got {self.image_shape}: larger pictures are read in tiles"
            )
        check_margin(self.margin)
        if len(self.classes) < 2:
            raise ConfigError(f"classes: expected at least two, got {self.classes}")
        channels = self.image_shape[0]
        mean = (0.0,) * channels if self.mean is None else self.mean
        std = (1.0,) * channels if self.std is None else self.std
        usable = all(math.isfinite(m) for m in mean) and all(0 < s < math.inf for s in std)
        if len(mean) != channels or len(std) != channels or not usable:
            raise ConfigError(
                f"mean and std: expected {channels} values each, std positive, got {mean} and {std}"
            )

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.classes)


@dataclass(frozen=True, kw_only=True)
class SiteConfig(SiteArchitecture, ModelConfig):
    """The configuration of a SITE model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.multi_label and self.zero_sum:
            raise ConfigError(
                "zero_sum: evidence relative to all classes means nothing where several are true: drop it"
            )

    TITLE: ClassVar[str] = "a SITE model"
    PARTS: ClassVar[tuple[str, ...]] = ("feature_extractor", "generator")

    kind: Literal["site"] = "site"


@dataclass(frozen=True, kw_only=True)
class BlackBoxConfig(ModelConfig):
    """The configuration of a black box; `encoder_of` names the generator whose encoder it has."""

    TITLE: ClassVar[str] = "a black box"

    kind: Literal["black_box"] = "black_box"
    encoder_of: str = "lateral"
    encoder_options: dict[str, Any] = field(default_factory=dict)


# Kinds of models from outside add theirs.
CONFIGS: dict[str, type[ModelConfig]] = {
    "site": SiteConfig,
    "black_box": BlackBoxConfig,
}
# The earlier names of fields, in files of versions up to 0.1.
RENAMED: Mapping[str, str] = {"several": "multi_label"}
# The keys of black boxes in files of versions up to 0.1: new names, or None for what they never had.
OLD_KEYS: Mapping[str, str | None] = {
    "generator": "encoder_of",
    "generator_options": "encoder_options",
    "activation": None,
    "product_scale": None,
    "zero_sum": None,
}


def read_mapping(values: Any) -> ModelConfig:
    """The configuration of either kind from plain data; anything unexpected is an error."""
    kind = values.get("kind") if isinstance(values, Mapping) else None
    if not isinstance(kind, str) or kind not in CONFIGS:
        raise ConfigError(f"kind: expected one of {', '.join(CONFIGS)}, got {kind!r}")
    values = with_new_names(values)
    if kind == "black_box":
        renamed = {OLD_KEYS.get(name, name): value for name, value in values.items()}
        values = {name: value for name, value in renamed.items() if name is not None}
    return from_mapping(CONFIGS[kind], values)


def with_new_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a model's configuration by their names of today."""
    return {RENAMED.get(name, name): value for name, value in values.items()}


def describe(
    kind: type[Config], parts: Mapping[str, Part], n_classes: int | None, options: Mapping[str, Any]
) -> Config:
    """The configuration for these arguments; options that are None keep their defaults."""
    given = {name: value for name, value in options.items() if value is not None}
    classes = class_names(given.get("classes"), n_classes)
    names = {name: CUSTOM if isinstance(part, nn.Module) else part for name, part in parts.items()}
    return from_mapping(kind, {"image_shape": (3, 32, 32)} | given | names | {"classes": classes})


def arguments(config: ModelConfig, modules: Mapping[str, nn.Module]) -> dict[str, Any]:
    """What to call a model's constructor with; the caller brings the modules that were the caller's own."""
    values = {f.name: getattr(config, f.name) for f in fields(config) if f.name not in ("kind", "version")}
    for part in config.PARTS:
        if values[part] == CUSTOM:
            if part not in modules:
                raise ConfigError(
                    f"this model was built with a {part} of your own: pass it again, `{part}=…`"
                )
            values[part] = modules[part]
    return values | {"n_classes": config.n_classes}


def class_names(classes: Sequence[str] | None, n_classes: int | None) -> tuple[str, ...]:
    """The given names, checked, or the numbers as names; ten by default."""
    if classes is None:
        return tuple(str(i) for i in range(10 if n_classes is None else n_classes))
    expected = len(classes) if n_classes is None else n_classes
    if len(classes) != expected or len(set(classes)) != expected:
        raise ConfigError(
            f"classes: expected {expected} different names, got {len(classes)}: {list(classes)}"
        )
    return tuple(classes)
