"""Measures of other libraries on our explainers, and our explainers in other libraries.

    quantus_scores(quantus.PixelFlipping(…), explain, images, classes)      any Quantus metric on an explainer
    quantus.evaluate(…, explain_func=quantus_explainer(explain))             an explainer within Quantus
    captum.metrics.sensitivity_max(captum_maps(explain), images, target=classes)
    captum.metrics.infidelity(explain.logits, perturb, images, captum_maps(explain)(images, classes), …)

`explain` is whatever `as_explainer` takes; that, in the last line, is one of its `Explainer`s. Maps are
(batch, 1, rows, cols) for Quantus. Quantus is no dependency: `pip install quantus`. Metrics of either that
sample draw from the global random state.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torchsite.metrics.explainer import as_explainer
from torchsite.modes import evaluating
from torchsite.shapes import Images, Labels

QuantusExplain = Callable[..., "np.ndarray[Any, Any]"]
CaptumExplain = Callable[[Any, Labels], tuple[Tensor]]


def quantus_explainer(explain: Any, model: nn.Module | None = None) -> QuantusExplain:
    """Our explainer as an `explain_func` of Quantus, on the model that it passes if it can be rebuilt."""
    ours = as_explainer(explain, model)

    def explain_func(
        model: nn.Module, inputs: Any, targets: Any, **_: Any
    ) -> "np.ndarray[Any, Any]":  # the signature is Quantus'
        explainer = ours if model is ours.model or ours.rebuild is None else ours.on(model)
        images = torch.as_tensor(inputs, dtype=torch.get_default_dtype())
        maps = explainer(images, torch.as_tensor(targets, dtype=torch.int64))
        found: np.ndarray[Any, Any] = maps[:, None].cpu().numpy()
        return found

    return explain_func


def quantus_scores(
    metric: Any,
    explain: Any,
    images: Images,
    classes: Labels,
    *,
    model: nn.Module | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """The scores of a Quantus metric for an explainer on these pictures; `options` go to its call."""
    explainer = as_explainer(explain, model)
    judged = explainer.require_model()
    explain_func = quantus_explainer(explainer)
    with evaluating(judged):
        return metric(
            model=judged,
            x_batch=images.cpu().numpy(),
            y_batch=classes.cpu().numpy(),
            a_batch=explain_func(judged, images, classes),
            explain_func=explain_func,
            device=str(images.device),
            **(options or {}),
        )


def captum_maps(explain: Any, model: nn.Module | None = None) -> CaptumExplain:
    """Our explainer as an `explanation_func` of Captum: maps as large as the pictures, in a tuple of one.

    Each channel gets an equal part of the map, so sums stay.
    """
    explainer = as_explainer(explain, model)

    def explanation_func(inputs: Any, target: Labels) -> tuple[Tensor]:
        images: Tensor = inputs[0] if isinstance(inputs, tuple) else inputs  # Captum passes either
        maps = explainer(images, target)
        return ((maps[:, None] / images.shape[1]).repeat(1, images.shape[1], 1, 1),)

    return explanation_func
