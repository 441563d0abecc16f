"""A decaying mean of the weights (EMA), which generalises better than the last ones."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class WeightAverage:
    """mean ← decay · mean + (1 - decay) · weights after each step; with a decay of 0 there is none."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.averaged: AveragedModel | None = None
        if decay:
            self.averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay), use_buffers=True)

    def update(self, model: nn.Module) -> None:
        """Take the weights of this step into the mean; the first ones are the mean so far."""
        if self.averaged is not None:
            self.averaged.update_parameters(model)

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """The mean as the model's weights for a while."""
        weights = {} if self.averaged is None else {k: v.clone() for k, v in model.state_dict().items()}
        self.apply(model)
        try:
            yield
        finally:
            model.load_state_dict(weights, strict=bool(weights))

    def apply(self, model: nn.Module) -> None:
        """Leave the mean, if there is one, in the model."""
        if self.averaged is not None:
            mean = self.averaged.module.state_dict()
            numbers = {name: tensor for name, tensor in mean.items() if tensor.is_floating_point()}
            model.load_state_dict(numbers, strict=False)  # counters stay the model's own

    def state_dict(self) -> dict[str, Any]:
        """The mean so far."""
        return {} if self.averaged is None else self.averaged.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        if self.averaged is not None:
            self.averaged.load_state_dict(state)
