"""Everything that a training run depends on, besides the model and the data."""

import math
from dataclasses import dataclass, field
from typing import Literal

from torchsite.errors import ConfigError
from torchsite.transforms import TransformFamily


@dataclass(frozen=True)
class TrainingConfig:
    """A recipe in numbers; the defaults suit pictures of 28 to 32 pixels on a CPU."""

    epochs: int = 10
    batch_size: int = 128
    optimiser: Literal["adamw", "muon"] = "adamw"
    learning_rate: float = 3e-3
    muon_learning_rate: float = 0.02
    weight_decay: float = 0.05
    schedule: Literal["one_cycle", "cosine"] = "one_cycle"
    warm_up: float = 0.2
    cycles: int = 1
    label_smoothing: float = 0.0
    transformation_weight: float = 5.0
    targets: Literal["mean", "nearest", "sampled"] = "nearest"
    n_nearest: int = 16
    n_exemplars: int = 4
    warp: Literal["target", "prototype"] = "target"
    views: Literal["posed", "two_posed", "upright_and_posed"] = "posed"
    flip: bool = False
    equivariance_weight: float = 0.0
    equivariance: Literal["cosine", "centred", "calibrated"] = "cosine"
    hidden: float | None = None
    relative_from: float | None = None
    mean_decay: float = 0.99
    ema_decay: float = 0.0
    precision: Literal["32", "bf16"] = "32"
    accumulate: int = 1
    compile: bool = False
    family: TransformFamily = field(default_factory=TransformFamily)
    seed: int = 0
    validate_every: int = 1
    n_validation: int = 1000
    checkpoint_seconds: float = 60.0
    collapse_patience: int = 2

    def __post_init__(self) -> None:
        for name in (
            "epochs",
            "cycles",
            "accumulate",
            "n_nearest",
            "n_exemplars",
            "validate_every",
            "collapse_patience",
        ):
            _at_least(name, getattr(self, name), 1)
        if self.epochs % self.cycles:
            raise ConfigError(f"cycles: expected a divisor of epochs = {self.epochs}, got {self.cycles}")
        _at_least("batch_size", self.batch_size, 2)  # batch norm has nothing to compare one picture with
        for name in (
            "transformation_weight",
            "equivariance_weight",
            "weight_decay",
            "checkpoint_seconds",
            "n_validation",
        ):
            _at_least(name, getattr(self, name), 0)
        for name in ("warm_up", "label_smoothing", "mean_decay", "ema_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected a number in [0, 1), got {getattr(self, name)}")
        if self.batch_size % self.accumulate or self.batch_size < 2 * self.accumulate:
            raise ConfigError(
                f"accumulate: expected a divisor of batch_size = {self.batch_size} that leaves at least two "
                f"pictures in a part, got {self.accumulate}"
            )
        for name in ("learning_rate", "muon_learning_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name}: expected a positive number, got {getattr(self, name)}")
        if self.equivariance_weight and self.views == "posed":
            raise ConfigError(
                "equivariance_weight: the direct term compares two views of each picture: "
                "expected views = two_posed or upright_and_posed, got posed"
            )
        if self.hidden is not None and not 0 <= self.hidden < 1:
            raise ConfigError(f"hidden: expected a share in [0, 1) or nothing, got {self.hidden}")
        if self.hidden is not None and not (self.equivariance_weight and self.views == "upright_and_posed"):
            raise ConfigError(
                "hidden: the direct term compares what is hidden with the whole picture: expected "
                "views = upright_and_posed and equivariance_weight > 0, "
                f"got {self.views} and {self.equivariance_weight}"
            )
        if self.relative_from is not None and not (0 <= self.relative_from < 1 and self.equivariance_weight):
            raise ConfigError(
                "relative_from: expected the share of the training, in [0, 1), after which the direct term "
                "compares relative maps, and equivariance_weight > 0, "
                f"got {self.relative_from} and {self.equivariance_weight}"
            )
        if self.n_exemplars > self.n_nearest:
            raise ConfigError(
                f"n_exemplars: expected at most n_nearest = {self.n_nearest}, got {self.n_exemplars}"
            )


def _at_least(name: str, value: float, low: float) -> None:
    if not value >= low:
        raise ConfigError(f"{name}: expected at least {low}, got {value}")
