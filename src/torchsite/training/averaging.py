"""A decaying mean of the weights (EMA), which generalises better than the last ones."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """mean ← decay · mean + (1 - decay) · weights after each step; with a decay of 0 there is none."""

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.mean: dict[str, Tensor] = {}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Take the weights of this step into the mean; the first ones are the mean so far."""
        if not self.decay:
            return
        for name, tensor in model.state_dict().items():
            if name in self.mean and tensor.is_floating_point():
                self.mean[name] = self.mean[name].to(tensor.device).lerp_(tensor, 1 - self.decay)
            else:
                self.mean[name] = tensor.clone()

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """The mean as the model's weights for a while."""
        weights = {name: tensor.clone() for name, tensor in model.state_dict().items()} if self.mean else {}
        self.apply(model)
        try:
            yield
        finally:
            if weights:
                model.load_state_dict(weights)

    def apply(self, model: nn.Module) -> None:
        """Leave the mean, if there is one, in the model."""
        if self.mean:
            model.load_state_dict(self.mean)
