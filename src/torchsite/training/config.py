"""Everything that a training run depends on, besides the model and the data."""

from dataclasses import dataclass, field
from typing import Literal

from torchsite.configs import check_bounds
from torchsite.errors import ConfigError
from torchsite.objective import EquivarianceTerm, Term, TransformationTerm
from torchsite.objective.views import VIEWS, View, ViewName, check_fills, join_views
from torchsite.transforms import TransformFamily
from torchsite.transforms.fill import FILLS


@dataclass(frozen=True)
class TrainingConfig:
    """The settings of a training; the defaults suit pictures of 28 to 32 pixels on a CPU.

    The classification loss is always minimised; `terms` are added to it. Pictures are seen in the `views`
    that are named here, and in those that the terms compare. `corners` are the fillings around posed
    pictures, one at random for each: black corners alone would show the network the pose of the frame. With
    `class_weights: balanced` every class counts the same in the classification loss.

    Weight decay leaves biases and norms out (`optimisers.py`).

    A training takes `epochs`. With `seconds`, it takes so long at most (without its last validation), and the
    learning rate and the terms follow what is further on, the steps or the clock: however slow the machine,
    a training ends at the end of its schedule. It can then not be repeated bit by bit.
    """

    epochs: int = 10
    seconds: float | None = None
    batch_size: int = 128
    optimiser: Literal["adamw", "muon"] = "adamw"
    learning_rate: float = 3e-3
    muon_learning_rate: float = 0.02
    weight_decay: float = 0.05
    schedule: Literal["one_cycle", "cosine"] = "one_cycle"
    warm_up: float = 0.2
    cycles: int = 1
    label_smoothing: float = 0.0
    class_weights: Literal["equal", "balanced"] = "equal"
    terms: tuple[Term, ...] = (TransformationTerm(),)
    views: tuple[ViewName, ...] = ("posed",)
    corners: tuple[str, ...] = ("black",)
    flip: bool = False
    jitter: int = 0
    precision: Literal["auto", "32", "bf16"] = "auto"
    accumulate: int = 1
    family: TransformFamily = field(default_factory=TransformFamily)
    seed: int = 0
    validate_every: int = 1
    n_validation: int = 1000
    checkpoint_seconds: float = 60.0
    collapse_patience: int = 2

    def __post_init__(self) -> None:
        check_bounds(self, "[1, ∞)", "epochs", "cycles", "accumulate", "validate_every", "collapse_patience")
        check_bounds(self, "[2, ∞)", "batch_size")  # batch norm has nothing to compare one picture with
        check_bounds(self, "(0, ∞)", "seconds", "learning_rate", "muon_learning_rate")
        check_bounds(self, "[0, ∞)", "weight_decay", "n_validation", "jitter")
        check_bounds(self, "[0, ∞]", "checkpoint_seconds")
        check_bounds(self, "[0, 1)", "warm_up", "label_smoothing")
        if self.epochs % self.cycles:
            raise ConfigError(f"cycles: expected a divisor of epochs = {self.epochs}, got {self.cycles}")
        if self.batch_size % self.accumulate or self.batch_size < 2 * self.accumulate:
            raise ConfigError(
                f"accumulate: expected a divisor of batch_size = {self.batch_size} that leaves at least two "
                f"pictures in a part, got {self.accumulate}"
            )
        if not self.views:
            raise ConfigError("views: expected at least one of upright, posed, got none")
        silent = any(isinstance(term, EquivarianceTerm) and term.unseen == "silent" for term in self.terms)
        field = "corners, beside equivariance with unseen: silent" if silent else "corners"
        check_fills(field, self.corners, ("black", "mean") if silent else FILLS)
        join_views([*self.own_views, *(view for term in self.terms for view in term.views())])

    def n_steps(self, n_pictures: int) -> int:
        """The steps of all epochs over so many pictures; an epoch has whole batches only."""
        return self.epochs * (n_pictures // self.batch_size)

    @property
    def own_views(self) -> tuple[View, ...]:
        """The views that are named here, whatever the terms compare."""
        return tuple(VIEWS[name] for name in self.views)
