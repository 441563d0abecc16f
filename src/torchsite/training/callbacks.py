"""The care around a run: checkpoints that survive anything, and a watch for collapse.

A checkpoint is written beside its place and renamed, and carries a checksum; the one before is kept. When a
run resumes, a damaged newest checkpoint is noticed and the one before is used.
"""

import hashlib
import logging
import math
import time
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback

from torchsite.errors import TrainingError
from torchsite.results import write_atomically
from torchsite.training.module import Training

log = logging.getLogger(__name__)
LN2 = math.log(2)
NEWEST, PREVIOUS = "newest.ckpt", "previous.ckpt"


class Checkpoints(Callback):
    """Writes the whole state of a run every so many seconds, and when it is asked to stop."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self.written = time.monotonic()

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: L.LightningModule, *_: Any) -> None:
        """Save if it is time."""
        if time.monotonic() - self.written >= self.seconds:
            self.save(trainer)

    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Save the end of the run."""
        self.save(trainer)

    def save(self, trainer: L.Trainer) -> None:
        """Write the newest checkpoint; the one before stays until the next time."""
        newest = self.folder / NEWEST
        if trainer.is_global_zero and newest.exists():
            for name in (NEWEST, _checksum_name(NEWEST)):
                (self.folder / name).replace(self.folder / name.replace(NEWEST, PREVIOUS))
        temporary = self.folder / "writing.part"
        trainer.save_checkpoint(temporary)
        if trainer.is_global_zero:
            digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
            write_atomically(self.folder / _checksum_name(NEWEST), digest.encode())
            temporary.replace(newest)
        self.written = time.monotonic()


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that is whole."""
    for name in (NEWEST, PREVIOUS):
        path, checksum = folder / name, folder / _checksum_name(name)
        if not path.exists() or not checksum.exists():
            continue
        if hashlib.sha256(path.read_bytes()).hexdigest() == checksum.read_text():
            return path
        log.warning("%s is damaged (its checksum differs); trying the one before", path)
    return None


class CollapseWatch(Callback):
    """Stops when the regulariser has stopped teaching: L_trans at ln 2 and prototypes near one half.

    A prototype that says nothing has the value 1/2 everywhere, and then L_trans is ln 2 = 0.6931 whatever
    the targets are. An epoch whose mean lies within 1 % of that counts; `patience` of them in a row stop.
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
        self.flat_epochs = self.flat_epochs + 1 if abs(mean - LN2) < 0.01 * LN2 else 0
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
    """Keeps the weights of the end of the last epoch, so that a run that fails leaves something usable."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Save the model (not the run) if all its numbers are finite."""
        assert isinstance(pl_module, Training)
        model = pl_module.model
        if trainer.is_global_zero and all(bool(torch.isfinite(p).all()) for p in model.parameters()):
            model.save_pretrained(self.folder / "last_good")


def _checksum_name(name: str) -> str:
    return f"{name}.sha256"
