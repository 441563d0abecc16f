"""The arguments of one call of `load_dataset`, checked once and passed on as a value."""

from dataclasses import dataclass
from pathlib import Path

from torchsite.data.margins import check_margin, larger_size
from torchsite.errors import ConfigError, did_you_mean

SPLITS = {"train": "train", "test": "test", "val": "test", "valid": "test", "validation": "test"}
DEFAULT_SIZE = 128
MAX_SIDE = 2048  # of pictures as models take them; larger ones are read in tiles


@dataclass(frozen=True)
class Request:
    """A data set by name or folder, its split, and how to load it."""

    name: str
    split: str = "train"
    data_dir: Path | None = None
    size: int | None = None
    download: bool = True
    seed: int = 0
    holdout: float = 0.2
    progress: bool = True
    skip_unreadable: bool = False
    margin: float = 1.0

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise ConfigError(f"unknown split {self.split!r}: {did_you_mean(self.split, SPLITS)}")
        if self.size is not None and not 1 <= self.size <= MAX_SIDE:
            raise ConfigError(f"size: expected 1 to {MAX_SIDE} pixels or None, got {self.size}")
        if not 0 < self.holdout < 1:
            raise ConfigError(f"holdout: expected a share between 0 and 1, got {self.holdout}")
        check_margin(self.margin)

    @property
    def half(self) -> str:
        """`train` or `test`: published sets have no third split, so validation means their test split."""
        return SPLITS[self.split]

    @property
    def picture_size(self) -> int:
        """The working size of sets that are decoded from pictures of any size."""
        return DEFAULT_SIZE if self.size is None else self.size

    @property
    def kept_size(self) -> int:
        """The size at which pictures are kept: with their margin."""
        return larger_size(self.picture_size, self.margin)
