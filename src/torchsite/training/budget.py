"""The cost of a training in multiply-accumulates, which, unlike seconds, do not depend on the machine.

    PMAC = steps · batch · (views of a picture · 3 + questions) · multiply-accumulates of a pass / 10¹⁵

The factor 3 is the forward pass and the two products of the backward pass, the usual estimate; questions are
forward passes without gradients (of the term `hiding`). Frozen weights need only one of the two products, so
for frozen extractors the figure is an upper bound. Normalisation, activations and resampling are not counted.
"""

from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from torchsite.model import SITE, ImageClassifier
from torchsite.model.base import dtype_of
from torchsite.modes import evaluating
from torchsite.objective.objective import views_of
from torchsite.training.config import TrainingConfig

FORWARD_AND_BACKWARD = 3


@dataclass(frozen=True)
class Budget:
    """A training in multiply-accumulates: 10⁹ of a view's forward pass, 10¹⁵ of the whole."""

    gmac_per_view: float
    views_per_picture: float
    pmac: float


@torch.enable_grad()  # the counter looks for gradients, even where a part hands on its weights as they are
def forward_macs(model: ImageClassifier) -> int:
    """The multiply-accumulates of one picture's forward pass."""
    device = next(model.parameters()).device
    picture = torch.zeros(1, *model.config.image_shape, device=device, dtype=dtype_of(model))
    counter = FlopCounterMode(display=False)
    with evaluating(model), counter:
        model(picture)
    return counter.get_total_flops() // 2


def training_budget(
    model: ImageClassifier, config: TrainingConfig, n_pictures: int, n_steps: int | None = None
) -> Budget:
    """What training this model on so many pictures takes; `n_steps` if a clock ended it before all epochs."""
    batch = config.batch_size
    n_steps = config.n_steps(n_pictures) if n_steps is None else n_steps
    seen = sum(view.n_shown(batch) for view in views_of(model, config.terms, config.own_views)) / batch
    asked = sum(term.n_asked(batch) for term in config.terms) if isinstance(model, SITE) else 0
    per_view = forward_macs(model)
    total = (FORWARD_AND_BACKWARD * seen * batch + asked) * per_view * n_steps
    return Budget(per_view / 1e9, seen, total / 1e15)
