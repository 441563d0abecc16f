"""The configurations of the peers that are no SITE models."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torchsite.model.config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class BCosConfig(ModelConfig):
    """The configuration of a B-cos network; with `zero_sum` its maps are relative to all classes."""

    TITLE: ClassVar[str] = "a B-cos network"

    kind: Literal["b_cos"] = "b_cos"
    feature_extractor: str = "b_cos"
    zero_sum: bool = False


@dataclass(frozen=True, kw_only=True)
class PrototypePartsConfig(ModelConfig):
    """The configuration of a classifier by parts: how many each class has, and how its maps are shown."""

    TITLE: ClassVar[str] = "a classifier by prototypes of parts"

    kind: Literal["prototype_parts"] = "prototype_parts"
    n_parts: int = 4
    zero_sum: bool = False
