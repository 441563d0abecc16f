"""The data sets of the leaderboard: the pictures, and how many minutes each training has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import torch

from experiments.bam.data import painted_halves, real_half
from experiments.bam.dataset import BamDataset
from torchsite.data import Dataset, load_dataset
from torchsite.errors import ConfigError, did_you_mean
from torchsite.model import ImageClassifier
from torchsite.randomness import make_rng
from torchsite.shapes import Heatmaps
from torchsite.training import TrainingConfig
from torchsite.transforms import TransformFamily

COMMON: Mapping[str, Any] = {
    "epochs": 500,  # more than the minutes allow: the clock decides
    "batch_size": 32,
    "learning_rate": 2e-3,
    "schedule": "cosine",
    "warm_up": 0.1,
    "views": ("upright", "posed"),
    "corners": ("black", "mean", "mean", "other"),
    "flip": True,
    "validate_every": 500,
    "n_validation": 250,
    "collapse_patience": 500,
}
FAMILY = TransformFamily()


Told = Mapping[str, Any]
Build = Callable[[str, Told], ImageClassifier]


@dataclass(frozen=True, eq=False)
class Halves:
    """Pictures to learn from and to be measured with; the regions of the objects, where they are known."""

    train: Dataset
    test: Dataset
    regions: Heatmaps | None = None


@dataclass(frozen=True)
class Field:
    """A data set of the board: its pictures, the minutes of one core of each training, the features."""

    name: str
    title: str
    minutes: float
    load: Callable[[], Halves]
    features: str = "two_scales"
    options: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)

    def config(self, **changes: Any) -> TrainingConfig:
        """The common training on this data set."""
        given = {**COMMON, "seconds": 60 * self.minutes, "family": FAMILY, **self.training, **changes}
        return TrainingConfig(**given)

    def model(self, build: Build, train: Dataset, seed: int) -> ImageClassifier:
        """The model of an entry, whose first weights follow the seed."""
        channels, height, width = train.images.shape[1:]
        told: dict[str, Any] = {"image_shape": (channels, height, width), "classes": train.classes}
        told |= {"family": FAMILY} | ({"extractor_options": dict(self.options)} if self.options else {})
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return build(self.features, told)


def _folder(name: str, size: int) -> Callable[[], Halves]:
    def half(split: str) -> Dataset:
        data = load_dataset(name, split, size=size)
        return data[torch.randperm(len(data), generator=make_rng(0, "leaderboard", split))]

    return lambda: Halves(half("train"), half("test"))


def _objects(train: BamDataset, test: BamDataset) -> Halves:
    return Halves(train.labelled("object"), test.labelled("object"), test.regions.float())


def _bam() -> Halves:
    return _objects(*(real_half(half, 96) for half in ("train", "test")))


def _painted() -> Halves:
    halves = painted_halves(16)
    return _objects(halves.train, halves.test)


def _digits() -> Halves:
    return Halves(load_dataset("mnist_sample", "train")[:256], load_dataset("mnist_sample", "test")[:128])


FIELDS: tuple[Field, ...] = (
    Field("eurosat", "EuroSAT, 64 px", 5.0, _folder("eurosat-64px", 64)),
    Field("food10", "ten dishes of Food-101, 96 px", 8.0, _folder("food10", 96)),
    Field("cifar10", "CIFAR-10 at 64 px", 8.0, _folder("cifar10", 64)),
    Field("bam", "objects on scenes (BAM, 96 px)", 8.0, _bam),
)
_SMALL: Mapping[str, Any] = {
    "features": "small_cnn",
    "options": {"widths": (4, 8, 8), "depth": 5},
    "training": {"epochs": 1, "n_validation": 20},
}
QUICK_FIELDS: tuple[Field, ...] = (
    Field("digits", "embedded digits", 1.0, _digits, **_SMALL),
    Field("painted", "painted objects", 1.0, _painted, **_SMALL),
)


class Named(Protocol):
    """Whatever has a name."""

    @property
    def name(self) -> str:
        """The name."""


OfName = TypeVar("OfName", bound=Named)


def chosen(names: Sequence[str], known: Sequence[OfName]) -> tuple[OfName, ...]:
    """The entries, or data sets, of these names, all if none is named; a wrong name is an error."""
    by_name = {one.name: one for one in known}
    for name in names:
        if name not in by_name:
            raise ConfigError(f"no {name!r} on the board: {did_you_mean(name, by_name)}")
    return tuple(one for name, one in by_name.items() if name in names or not names)
