"""Checks that stop a training which has diverged or collapsed, and the last good weights."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from torchsite.errors import TrainingError
from torchsite.model import save_weights
from torchsite.objective.transformation import LN2
from torchsite.training.callback import Callback

if TYPE_CHECKING:
    from torchsite.training.loop import Run

LAST_GOOD = "last_good"
LEAST_STEPS = 100
COUNTED = ("flat_epochs", "flat_steps", "sum", "n")


class CollapseCheck(Callback):
    """Stops a run whose transformation loss stays at ln 2 (collapsed) or rises far above it (diverged).

    A prototype of 1/2 everywhere has no information; its loss is ln 2 = 0.6931 for any targets. A run
    stops after `patience` epochs in a row whose mean is within 1 % of that, if they have a hundred steps or
    more; and at once, after the first epoch, if the mean is more than twice that.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.flat_epochs, self.flat_steps = 0, 0
        self.sum, self.n = 0.0, 0

    def step_done(self, run: "Run", losses: Mapping[str, Tensor]) -> None:
        """Add up the transformation loss of the epoch."""
        if "transformation" in losses:
            self.sum, self.n = self.sum + float(losses["transformation"]), self.n + 1

    def epoch_done(self, run: "Run") -> None:
        """Check the mean of the epoch."""
        if not self.n:
            return
        mean, n_steps, self.sum, self.n = self.sum / self.n, self.n, 0.0, 0
        if mean > 2 * LN2 and run.epoch > 1:
            raise TrainingError(
                f"the transformation loss diverged: in epoch {run.epoch} it "
                f"was {mean:.4g} on average, and prototypes without information have {LN2:.4f}. Use smaller "
                f"learning rates; the weights of the epoch before are kept in the run's folder"
            )
        if abs(mean - LN2) < 0.01 * LN2:
            self.flat_epochs, self.flat_steps = self.flat_epochs + 1, self.flat_steps + n_steps
        else:
            self.flat_epochs, self.flat_steps = 0, 0
        if self.flat_epochs >= self.patience and self.flat_steps >= LEAST_STEPS:
            raise TrainingError(
                f"the prototypes have collapsed: for {self.flat_epochs} epochs the transformation loss was "
                f"{mean:.4f}; ln 2 = {LN2:.4f} means prototypes without information. Use the scaled product "
                f"(product_scale), a larger weight of the transformation term or a smaller learning rate"
            )

    def state_dict(self) -> dict[str, Any]:
        """The counters, for a checkpoint."""
        return {name: getattr(self, name) for name in COUNTED}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the counters; those that an earlier version did not have begin at 0."""
        for name in COUNTED:
            setattr(self, name, state.get(name, 0))


class LastGood(Callback):
    """Keeps the weights of the end of the last epoch, so that a run that fails leaves something usable.

    A run that fails in its first epoch leaves the weights it had when it failed.
    """

    def epoch_done(self, run: "Run") -> None:
        """Save the model (not the run) if all its numbers are finite."""
        state = run.model.state_dict()
        if run.fabric.is_global_zero and all(bool(torch.isfinite(tensor).all()) for tensor in state.values()):
            save_weights(run.folder / LAST_GOOD, run.model.config, state)

    def ended(self, run: "Run") -> None:
        """Save what there is if no epoch was finished."""
        if not (run.folder / LAST_GOOD).exists():
            self.epoch_done(run)
