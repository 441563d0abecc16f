"""How long a step and a validation take here, with the very model and batch; and when time is up."""

import copy
import math
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from torchsite.data import Dataset
from torchsite.model import SITE, BlackBox
from torchsite.training.fit import fit
from torchsite.training.loop import Run
from torchsite.training.recipes import Recipe, build_model
from torchsite.training.watch import Watch

WARM_UP_STEPS = 2
MEASURED_STEPS = 4


@dataclass(frozen=True)
class Pace:
    """How long things take here: one training step, and one validation."""

    step: float
    validation: float


def measure_pace(recipe: Recipe, train: Dataset, test: Dataset, model: SITE | BlackBox | None = None) -> Pace:
    """A few steps and one small validation with the very model and batch, thrown away afterwards.

    A `model` that is given is copied and stays as it is; without one, that of the recipe is built.
    """
    watch = _StepWatch()
    n = min(len(train), (WARM_UP_STEPS + MEASURED_STEPS) * recipe.training.batch_size)
    n_validation = min(len(test), 32)
    short: Mapping[str, Any] = {"epochs": 1, "validate_every": 1, "n_validation": n_validation}
    config = replace(recipe.training, **short, checkpoint_seconds=math.inf)
    rows = _spread(train, n)
    model = build_model(recipe.model, train, config) if model is None else copy.deepcopy(model)
    with tempfile.TemporaryDirectory(prefix="torchsite-") as folder:
        fit(
            model,
            rows,
            config,
            validation=test[:n_validation],
            folder=Path(folder) / "pace",
            watches=[watch],
        )
    all_of_them = min(recipe.training.n_validation, len(test)) / n_validation
    return Pace(watch.step_seconds, watch.validation_seconds * all_of_them)


class Deadline(Watch):
    """Ends training when its time is up: other work on the machine may have slowed it down."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.started_at = time.monotonic()
        self.reached = False

    def step_done(self, run: Run, losses: Mapping[str, Tensor]) -> None:
        """Ask the run to end."""
        if not self.reached and time.monotonic() - self.started_at > self.seconds:
            self.reached = run.ending = True


class _StepWatch(Watch):
    """Notes when steps end and how long a validation takes."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.validation_seconds = 0.0

    @property
    def step_seconds(self) -> float:
        """The mean time of the steps after the first ones; of all, if there are no others."""
        counted = self.ends[min(WARM_UP_STEPS, max(0, len(self.ends) - 2)) :]
        return (counted[-1] - counted[0]) / max(1, len(counted) - 1)

    def started(self, run: Run) -> None:
        """The clock starts."""
        self.ends.append(time.monotonic())

    def step_done(self, run: Run, losses: Mapping[str, Tensor]) -> None:
        """One step more."""
        self.ends.append(time.monotonic())

    def validated(self, run: Run, measures: Mapping[str, float], seconds: float) -> None:
        """Keep the time of the first one."""
        self.validation_seconds = self.validation_seconds or seconds


def _spread(data: Dataset, n: int) -> Dataset:
    """Pictures spread over the data, with one of each class."""
    step = max(1, len(data) // n)
    rows = set(range(0, len(data), step)) | {data.labels.tolist().index(k) for k in set(data.labels.tolist())}
    return data[sorted(rows)]
