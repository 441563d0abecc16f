"""The exponential moving average (EMA) of the weights, which often generalises better than the last ones.

    mean ← decay · mean + (1 - decay) · weights,    decay = exp(-Δ / (ema · n_steps))

`ema` is a share of the training, so the mean reaches equally far back however many steps there are. Δ is how
far a step brings the training on: one step, or more where the clock is ahead of the steps.
"""

import math

from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class WeightAverage(AveragedModel):
    """A copy of a model whose weights and batch-norm statistics are the mean; `module` is that model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model, use_buffers=True)
        self.requires_grad_(False)

    def follow(self, model: nn.Module, advance: float) -> None:
        """Take in the weights of a step, which is `advance` times as long as the mean reaches back."""
        self.multi_avg_fn = get_ema_multi_avg_fn(math.exp(-advance))
        self.update_parameters(model)

    def write_to(self, model: nn.Module) -> None:
        """Give the model the mean; its counters stay its own."""
        mean = self.module.state_dict()
        model.load_state_dict({k: v for k, v in mean.items() if v.is_floating_point()}, strict=False)
