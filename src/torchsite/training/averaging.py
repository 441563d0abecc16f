"""A decaying mean of the weights (EMA), which generalises better than the last ones.

Only the model is averaged: the targets beside it, integers among them, are left alone. (Lightning's own
callback averages every buffer of the module, and with them the pictures that the exemplars look up.)
"""

from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor, nn

from torchsite.training.module import Training
from torchsite.training.sharding import divided_like, whole


class WeightAverage(Callback):
    """mean ← decay · mean + (1 - decay) · weights after each step; validated with, and left in the model."""

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.mean: dict[str, Tensor] = {}

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Divide a mean that was kept whole as the model is divided, if it is."""
        weights = _model(pl_module).state_dict()
        self.mean = {name: divided_like(tensor, weights[name]) for name, tensor in self.mean.items()}

    @torch.no_grad()
    def on_train_batch_end(self, trainer: L.Trainer, pl_module: L.LightningModule, *_: Any) -> None:
        """Take the weights of this step into the mean; the first ones are the mean so far."""
        for name, tensor in _model(pl_module).state_dict().items():
            if name in self.mean and tensor.is_floating_point():
                self.mean[name] = self.mean[name].to(tensor.device).lerp_(tensor, 1 - self.decay)
            else:
                self.mean[name] = tensor.clone()

    def on_validation_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Validate the mean."""
        self._swap(pl_module)

    def on_validation_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Go on training with the weights themselves."""
        self._swap(pl_module)

    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """The mean is what was trained."""
        if self.mean:
            _model(pl_module).load_state_dict(self.mean)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run must know."""
        return {"mean": {name: whole(tensor) for name, tensor in self.mean.items()}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on averaging."""
        self.mean = state_dict["mean"]

    def _swap(self, pl_module: L.LightningModule) -> None:
        if self.mean:
            weights = {name: tensor.clone() for name, tensor in _model(pl_module).state_dict().items()}
            _model(pl_module).load_state_dict(self.mean)
            self.mean = weights


def _model(pl_module: L.LightningModule) -> nn.Module:
    assert isinstance(pl_module, Training)
    return pl_module.model
