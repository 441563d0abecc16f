"""The care around a run: checkpoints that survive anything, and a watch for collapse.

A checkpoint is written beside its place and then renamed, once, to a name that carries its checksum; older
ones go only after that. So whenever a run is killed, a whole checkpoint is there, and when it resumes, a
damaged newest one is noticed and the one before is used.
"""

import hashlib
import logging
import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback

from torchsite.errors import StoppedError, TrainingError
from torchsite.model import save_weights
from torchsite.training.distributed import highest_of_ranks
from torchsite.training.module import LN2, Training
from torchsite.training.sharding import ShardedStrategy, whole_state

log = logging.getLogger(__name__)
CHECKPOINT = re.compile(r"(?P<number>\d{8})-(?P<digest>[0-9a-f]{16})\.ckpt")
KEPT = 2
LAST_GOOD = "last_good"


class Checkpoints(Callback):
    """Writes the whole state of a run every so many seconds, at its end, and when it is told to stop.

    SIGTERM, which schedulers send before they kill, lets the running step end; then the state is written and
    `StoppedError` raised, on all ranks if one of them was told.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self.told_to_stop = False
        self.folder, self.seconds = folder / "checkpoints", seconds
        self.started = self.written = time.monotonic()
        self.spent_before = 0.0

    @property
    def seconds_spent(self) -> float:
        """How long the run has taken, the time before it was resumed included."""
        return self.spent_before + time.monotonic() - self.started

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Listen to SIGTERM; Lightning, which listens as well, restores what was there before."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._note)

    def _note(self, *_: Any) -> None:
        self.told_to_stop = True

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: L.LightningModule, *_: Any) -> None:
        """Save if it is time, on all ranks together; stop if one of them was told to."""
        due = time.monotonic() - self.written >= self.seconds
        wish = highest_of_ranks(2 if self.told_to_stop else int(due))
        if wish:
            self.save(trainer)
        if wish == 2:
            assert isinstance(pl_module, Training)
            raise StoppedError(
                f"told to stop (SIGTERM) after step {pl_module.steps_done}: the state of the run is in "
                f"{self.folder}, go on with resume=True"
            )

    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Save the end of the run."""
        self.save(trainer)

    def save(self, trainer: L.Trainer) -> None:
        """Write a checkpoint; the one before stays, those before it go."""
        temporary = self.folder / "writing.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            trainer.save_checkpoint(temporary, weights_only=False)
            if trainer.is_global_zero:
                publish(temporary)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise TrainingError(
                f"no checkpoint could be written to {self.folder} ({error}): make room, then go on with "
                f"resume=True from the checkpoint before"
            ) from error
        self.written = time.monotonic()

    def state_dict(self) -> dict[str, Any]:
        """The time spent, which a resumed run adds to its own."""
        return {"seconds": self.seconds_spent}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on counting."""
        self.spent_before = state_dict["seconds"]


def publish(temporary: Path) -> Path:
    """Give a finished file its place as the newest checkpoint, then remove all but the last ones."""
    folder, earlier = temporary.parent, checkpoints(temporary.parent)
    number = int(earlier[0].name[:8]) + 1 if earlier else 0
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    path = folder / f"{number:08d}-{_digest(temporary)}.ckpt"
    temporary.replace(path)
    for old in earlier[KEPT - 1 :]:
        old.unlink()
    return path


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, whole or not, newest first."""
    return sorted((path for path in folder.glob("*.ckpt") if CHECKPOINT.fullmatch(path.name)), reverse=True)


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint of a run that is whole; an error if there are some but none is whole."""
    found = checkpoints(folder / "checkpoints")
    for path in found:
        if _digest(path) in path.name:
            return path
        log.warning("%s is damaged (its checksum differs); trying the one before", path)
    if found:
        raise TrainingError(
            f"all checkpoints in {found[0].parent} are damaged: begin again in another folder"
        )
    return None


class CollapseWatch(Callback):
    """Stops when the regulariser has stopped teaching: L_trans at ln 2, or far above it.

    A prototype that says nothing has the value 1/2 everywhere, and then L_trans is ln 2 = 0.6931 whatever
    the targets are. An epoch whose mean lies within 1 % of that counts; `patience` of them in a row stop. A
    mean of more than twice that, after the first epoch, stops at once: the weights have run away.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.flat_epochs = 0
        self.sum, self.n = 0.0, 0

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: L.LightningModule, *_: Any) -> None:
        """Add up the transformation loss of the epoch."""
        value = trainer.callback_metrics.get("transformation")
        if value is not None:
            self.sum, self.n = self.sum + float(value), self.n + 1

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Judge the epoch."""
        if not self.n:
            return
        mean, self.sum, self.n = self.sum / self.n, 0.0, 0
        if trainer.strategy.reduce_boolean_decision(mean > 2 * LN2) and trainer.current_epoch > 0:
            raise TrainingError(
                f"the prototypes have run away: in epoch {trainer.current_epoch + 1} the transformation loss "
                f"was {mean:.4g} on average, and prototypes that say nothing have {LN2:.4f}. Use smaller "
                f"learning rates; the weights of the epoch before are kept in the run's folder"
            )
        flat = trainer.strategy.reduce_boolean_decision(abs(mean - LN2) < 0.01 * LN2)
        self.flat_epochs = self.flat_epochs + 1 if flat else 0
        if self.flat_epochs >= self.patience:
            raise TrainingError(
                f"the prototypes have collapsed: for {self.flat_epochs} epochs the transformation loss was "
                f"{mean:.4f}, and ln 2 = {LN2:.4f} means that they say nothing. Use the scaled product "
                f"(product_scale), a larger transformation_weight or a smaller learning rate"
            )

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run must know."""
        return {"flat_epochs": self.flat_epochs, "sum": self.sum, "n": self.n}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on counting."""
        self.flat_epochs, self.sum, self.n = (state_dict[key] for key in ("flat_epochs", "sum", "n"))


class LastGood(Callback):
    """Keeps the weights of the end of the last epoch, so that a run that fails leaves something usable.

    A run that fails in its first epoch leaves the weights it had when it failed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Save the model (not the run) if all its numbers are finite."""
        assert isinstance(pl_module, Training)
        state = whole_state(pl_module.model)
        if trainer.is_global_zero and all(bool(torch.isfinite(tensor).all()) for tensor in state.values()):
            save_weights(self.folder / LAST_GOOD, pl_module.model.config, state)

    def on_exception(
        self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException
    ) -> None:
        """Save what there is if no epoch was finished; divided weights cannot be had of one process alone."""
        divided = isinstance(trainer.strategy, ShardedStrategy)
        if not divided and not (self.folder / LAST_GOOD).exists():
            self.on_train_epoch_end(trainer, pl_module)


def _digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:16]
