"""Where the board is played: three data sets, a budget for each, and how a training is made to meet it.

    PMAC = 3 · multiply-accumulates of a view · views of a picture · pictures / 10¹⁵

The number of pictures follows from the budget: whole epochs, and in each as many pictures as the budget still
pays for, near to all of them. Every entry therefore costs the same arithmetic, whatever its size and however
many views its terms compare.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from experiments.bam.data import painted_halves, real_half
from torchsite.data import Dataset, load_dataset
from torchsite.model import ImageClassifier
from torchsite.randomness import make_rng
from torchsite.shapes import Heatmaps
from torchsite.training import TrainingConfig
from torchsite.training.budget import training_budget

COMMON: Mapping[str, Any] = {
    "batch_size": 64,
    "optimiser": "muon",
    "learning_rate": 4e-3,
    "muon_learning_rate": 0.06,
    "warm_up": 0.1,
    "label_smoothing": 0.1,
    "views": ("upright", "posed"),
    "corners": ("black", "mean", "mean", "other"),
    "n_validation": 500,
    "precision": "bf16",
    "collapse_patience": 1000,
}
BAM_SIZE = 48


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures to learn from and to be measured with; the regions of the objects, where they are known."""

    train: Dataset
    test: Dataset
    regions: Heatmaps | None = None


@dataclass(frozen=True)
class Field:
    """A data set of the board: its pictures, what each training may cost, and how it is seen."""

    name: str
    title: str
    pmac: float
    load: Callable[[], Pictures]
    training: Mapping[str, Any]

    def config(self, **changes: Any) -> TrainingConfig:
        """The common training on this data set."""
        return TrainingConfig(**{**COMMON, **self.training, **changes})


def within_budget(
    model: ImageClassifier, config: TrainingConfig, data: Dataset, pmac: float
) -> tuple[TrainingConfig, Dataset]:
    """The training of this model that costs so much: how many epochs, of how many pictures.

    Epochs are rounded to the nearest whole number; pictures beyond the set's own are seen once more.
    """
    one = replace(config, epochs=1)
    n_batches = pmac / training_budget(model, one, config.batch_size).pmac
    epochs = max(1, round(n_batches * config.batch_size / len(data)))
    n = max(1, round(n_batches / epochs)) * config.batch_size
    chosen = replace(config, epochs=epochs, validate_every=epochs)
    order = torch.randperm(len(data), generator=make_rng(config.seed, "leaderboard pictures"))
    return chosen, data[order[torch.arange(n) % len(data)]]


def _named(name: str, n_test: int = 2000) -> Callable[[], Pictures]:
    return lambda: Pictures(load_dataset(name, "train"), load_dataset(name, "test")[:n_test])


def _bam() -> Pictures:
    train, test = (real_half(half, BAM_SIZE) for half in ("train", "test"))
    return Pictures(train.labelled("object"), test.labelled("object")[:2000], test.regions[:2000].float())


def _digits() -> Pictures:
    train, test = (load_dataset("mnist_sample", split) for split in ("train", "test"))
    return Pictures(train[:256], test[:128])


def _painted() -> Pictures:
    halves = painted_halves(16)
    test = halves.test.labelled("object")
    return Pictures(halves.train.labelled("object"), test, halves.test.regions.float())


FIELDS: Mapping[str, Field] = {
    field.name: field
    for field in (
        Field("cifar10", "CIFAR-10", 0.0008, _named("cifar10"), {"flip": True}),
        Field("fashion_mnist", "Fashion-MNIST", 0.0003, _named("fashion_mnist"), {"flip": True}),
        Field("bam", "objects on scenes (BAM, 48 px)", 0.0006, _bam, {"flip": True}),
    )
}
QUICK_FIELDS: Mapping[str, Field] = {
    field.name: field
    for field in (
        Field("digits", "embedded digits", 2e-5, _digits, {"batch_size": 64, "n_validation": 20}),
        Field("painted", "painted objects", 1e-5, _painted, {"batch_size": 32, "n_validation": 20}),
    )
}
