"""All that is needed to build a model again: the `config.json` beside its weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from torchsite.errors import ConfigError
from torchsite.transforms import TransformFamily
from torchsite.version import __version__

CUSTOM = "custom"


@dataclass(frozen=True)
class ModelConfig:
    """A model in words: what it sees, what it answers, and what it is made of."""

    kind: Literal["site", "black_box"]
    image_shape: tuple[int, int, int]
    classes: tuple[str, ...]
    feature_extractor: str = "identity"
    extractor_options: dict[str, Any] = field(default_factory=dict)
    generator: str = "lateral"
    generator_options: dict[str, Any] = field(default_factory=dict)
    activation: Literal["sigmoid", "tanh", "relu"] = "sigmoid"
    product_scale: float = 1.0
    zero_sum: bool = False
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    family: TransformFamily = field(default_factory=TransformFamily)
    version: str = __version__

    def __post_init__(self) -> None:
        channels, height, width = self.image_shape
        if min(channels, height, width) < 1:
            raise ConfigError(f"image_shape: expected (channels, height, width), got {self.image_shape}")
        if len(self.classes) < 2:
            raise ConfigError(f"classes: expected at least two, got {self.classes}")
        check_statistics(channels, self.mean, self.std)
        if not 0 < self.product_scale < math.inf:
            raise ConfigError(f"product_scale: expected a positive number, got {self.product_scale}")
        for name in ("extractor_options", "generator_options"):
            object.__setattr__(self, name, _with_tuples(getattr(self, name)))

    @property
    def n_classes(self) -> int:
        """How many classes the model knows."""
        return len(self.classes)


def check_statistics(channels: int, mean: Sequence[float], std: Sequence[float]) -> None:
    """One mean and one positive standard deviation for each channel."""
    usable = all(math.isfinite(m) for m in mean) and all(0 < s < math.inf for s in std)
    if len(mean) != channels or len(std) != channels or not usable:
        raise ConfigError(
            f"mean and std: expected {channels} values each, std positive, got {tuple(mean)} and {tuple(std)}"
        )


def class_names(classes: Sequence[str] | None, n_classes: int) -> tuple[str, ...]:
    """The given names, checked, or the numbers as names."""
    if classes is None:
        return tuple(str(i) for i in range(n_classes))
    if len(classes) != n_classes or len(set(classes)) != n_classes:
        raise ConfigError(
            f"classes: expected {n_classes} different names, got {len(classes)}: {list(classes)}"
        )
    return tuple(classes)


def _with_tuples(options: dict[str, Any]) -> dict[str, Any]:
    """JSON knows only lists: the same options before and after a file compare equal."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
