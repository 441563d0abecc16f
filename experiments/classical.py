"""Accuracy of classical models beside SITE and the black box, on MNIST and CIFAR-10 (the paper's Table 2).

Claim:    models that can be read pixel by pixel fall behind SITE, on CIFAR-10 by far, and cannot follow
          pictures that are moved.
Command:  torchsite reproduce baselines
Cost:     each baseline is trained twice for each data set: on the training pictures as they are, and on the
          same pictures in one random pose each. Every training is a step of its own. One core: seven
          minutes for MNIST, forty for CIFAR-10, half of it XGBoost. With --quick, 500 embedded digits.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from experiments.baselines import BASELINES, Baseline
from experiments.cache import step
from experiments.section import TITLES, Pictures
from experiments.study import Found, Run, Study
from experiments.tables import Row
from torchsite.configs import to_mapping
from torchsite.data import Dataset, batches, load_dataset
from torchsite.metrics import METRICS, Poses, plain
from torchsite.randomness import make_rng
from torchsite.report.format import markdown_table, method_name, number, score
from torchsite.results import Result
from torchsite.shapes import Images, Logits
from torchsite.transforms import TransformFamily

DATA, QUICK_DATA = ("mnist", "cifar10"), ("mnist_sample",)
TRAINED_ON = ("untransformed", "transformed")
N_TRANSFORMS = 2  # as in `evaluate`, so that all models meet the same poses
BATCH = 1000
# On untransformed test pictures.
PAPER: Mapping[str, Mapping[str, float]] = {
    "decision_tree": {"mnist": 0.886, "cifar10": 0.229},
    "random_forest": {"mnist": 0.970, "cifar10": 0.396},
    "logistic_regression": {"mnist": 0.929, "cifar10": 0.357},
    "xgboost": {"mnist": 0.975, "cifar10": 0.450},
    "nam": {"mnist": 0.935, "cifar10": 0.370},
}
# What makes each baseline a matter of a second.
QUICK: Mapping[str, Mapping[str, Any]] = {
    "random_forest": {"n_estimators": 5},
    "logistic_regression": {"max_iter": 10},
    "xgboost": {"rounds": 2},
    "nam": {"epochs": 1, "hidden": (4,)},
}
WORDS = """Each model is trained on pictures as they are, and again on the same pictures in one random pose \
each (SITE and the black box, whose accuracies stand in the tables above: in a new pose every epoch); the \
paper's numbers are for test pictures as they are.
"""


def find(run: Run) -> Found:
    """Train and measure every baseline; each training is a step. None has weights that are kept."""
    table: list[Row] = []
    for data, trained_on, baseline in product(QUICK_DATA if run.quick else DATA, TRAINED_ON, run.methods):
        settings: dict[str, Any] = {
            "data": data,
            "trained_on": trained_on,
            "baseline": baseline,
            "quick": run.quick,
        }
        path = run.steps / f"{data}-{trained_on}-{baseline}.json"
        table.append({**settings, **step(path, settings, partial(learn, **settings)).values})
    poses = {"family": to_mapping(TransformFamily()), "n_transforms": N_TRANSFORMS}
    return Found({"table": table}, config={**poses, "weights": {}})


def learn(data: str, trained_on: str, baseline: str, quick: bool) -> dict[str, object]:
    """One baseline, trained on one kind of pictures: its accuracy, and what that took."""
    train, test = load_dataset(data, "train"), load_dataset(data, "test")
    train, test = (train[:500], test[:200]) if quick else (train, test)
    started = time.process_time()
    seen = in_one_pose(train) if trained_on == "transformed" else train
    model = BASELINES[baseline](**(QUICK.get(baseline, {}) if quick else {})).fit(seen)
    return {"accuracy": accuracy_of(model, test), "cpu_seconds": time.process_time() - started}


class AsModel(nn.Module):
    """A baseline as a classifier that measures can ask: 1 for the class it names, 0 for the others."""

    def __init__(self, baseline: Baseline, n_classes: int) -> None:
        super().__init__()
        self.baseline, self.n_classes = baseline, n_classes

    def forward(self, images: Images) -> Logits:
        """One-hot answers."""
        return F.one_hot(self.baseline.predict(images), self.n_classes).float()


def in_one_pose(data: Dataset, seed: int = 0) -> Dataset:
    """Every picture once, in a pose of its own."""
    rng, family = make_rng(seed, "baselines", "poses"), TransformFamily()
    moved = [
        family.sample(len(images), rng=rng)(images).mul(255).round().to(torch.uint8)
        for images, _ in batches(data, BATCH)
    ]
    return replace(data, images=torch.cat(moved))


def accuracy_of(baseline: Baseline, test: Dataset) -> dict[str, Any]:
    """Its accuracy on the test pictures as they are and in the poses that SITE is measured in."""
    model = AsModel(baseline, len(test.classes))
    metric = METRICS["accuracy"](model, model, poses=Poses(n=N_TRANSFORMS))
    for images, labels in batches(test, BATCH):
        metric.update(images, labels)
    found: dict[str, Any] = plain(metric.result())
    return found


def text(result: Result, pictures: Pictures) -> str:
    """A table for each data set."""
    parts = [WORDS]
    for data in dict.fromkeys(row["data"] for row in result.values["table"]):
        found: dict[str, dict[str, Row]] = {}
        for row in result.values["table"]:
            if row["data"] == data:
                found.setdefault(row["baseline"], {})[row["trained_on"]] = row
        rows = [[method_name(name), *_cells(name, data, trained)] for name, trained in found.items()]
        header = [TITLES.get(data, data), "as they are → as they are", "→ moved", "moved → as they are"]
        parts.append(markdown_table([*header, "→ moved", "paper", "CPU minutes"], rows))
    return "\n".join(parts)


def _cells(name: str, data: str, trained: Mapping[str, Row]) -> list[str]:
    """Trained on either kind of pictures, tested on both; the paper's accuracy, and the minutes."""
    scores = [score(trained.get(how), "accuracy", pose) for how in TRAINED_ON for pose in TRAINED_ON]
    minutes = sum(row["cpu_seconds"] for row in trained.values()) / 60
    return [*scores, number(PAPER.get(name, {}).get(data), 3), f"{minutes:.1f}"]


STUDY = Study(
    "baselines",
    "## Classical models beside SITE (Table 2)",
    methods=tuple(BASELINES),
    find=find,
    text=text,
)
