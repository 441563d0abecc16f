"""Callbacks of a training: each overrides the events that it needs.

A callback may ask the run to end early (`run.ending = True`), or stop it by raising a `TrainingError`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from torchsite.objective import Batch
    from torchsite.training.loop import Run


class Callback:
    """Base class of callbacks: every method is called at its event and does nothing."""

    def started(self, run: "Run") -> None:
        """Before the first step of this attempt."""

    def step_begins(self, run: "Run", batch: "Batch") -> None:
        """Before each step, with this process's pictures."""

    def step_done(self, run: "Run", losses: Mapping[str, Tensor]) -> None:
        """After each step, which `run.steps_done` counts, with its losses as means over all processes."""

    def epoch_done(self, run: "Run") -> None:
        """After the last step of each epoch."""

    def validated(self, run: "Run", measures: Mapping[str, float], seconds: float) -> None:
        """After each validation, with what it found and how long it took."""

    def ended(self, run: "Run") -> None:
        """After the last step of this attempt, whatever ended it."""
