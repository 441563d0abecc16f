"""What is known of a folder before anything is decoded, and what a decision is."""

from dataclasses import dataclass

from torchsite.errors import ConfigError


@dataclass(frozen=True)
class Survey:
    """What is known of a folder before anything is decoded; `side` is the usual shorter side in pixels."""

    n_train: int
    n_test: int
    n_classes: int
    side: int
    counts: tuple[int, ...] = ()
    channels: int = 3

    def __post_init__(self) -> None:
        if self.n_train < 4 or self.n_test < 2:
            raise ConfigError(
                f"expected at least 4 pictures to train on and 2 to test with, got {self.n_train} and "
                f"{self.n_test}: add some"
            )


@dataclass(frozen=True)
class Decision:
    """One setting, what was chosen, and why."""

    setting: str
    chosen: str
    why: str
