"""Measures of other libraries on our explainers, and our explainers in other libraries.

    quantus_scores(quantus.PixelFlipping(…), explain, images, classes)      any Quantus metric on an explainer
    quantus.evaluate(…, explain_func=quantus_explainer(explain))             an explainer within Quantus
    captum_infidelity(explain, images, classes, rng=rng)                     Captum's two measures
    captum_sensitivity(explain, images, classes, rng=rng)

`explain` is whatever `as_explainer` takes. Maps are (batch, 1, rows, cols) for Quantus; for Captum, whose
maps have the shape of the pictures, each channel gets an equal part of the map, so sums stay. Quantus is no
dependency: `pip install quantus`. Metrics of Quantus that sample draw from NumPy's global state.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torchsite.metrics.explainer import Explainer, as_explainer
from torchsite.modes import evaluating
from torchsite.randomness import Rng
from torchsite.shapes import Images, Labels, Scores

QuantusExplain = Callable[..., "np.ndarray[Any, Any]"]


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
    """What a metric of Quantus says of an explainer on these pictures; `options` go to its call."""
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


def captum_infidelity(
    explain: Any,
    images: Images,
    classes: Labels,
    *,
    model: nn.Module | None = None,
    noise: float = 0.1,
    n_samples: int = 10,
    rng: Rng,
) -> Scores:
    """E[(δ · I(x) - (f(x) - f(x - δ)))²] for δ of normal noise (Yeh et al., 2019); 0 is perfect."""
    from captum.metrics import infidelity

    explainer = as_explainer(explain, model)

    def perturb(inputs: Any) -> tuple[Tensor, Tensor]:
        shown = _one(inputs)
        delta = noise * torch.randn(shown.shape, generator=rng).to(shown)
        return delta, shown - delta

    with torch.no_grad():
        found: Scores = infidelity(
            explainer.logits,
            perturb,
            images,
            _like_pictures(explainer, images, classes),
            target=classes,
            n_perturb_samples=n_samples,
        )
    return found


def captum_sensitivity(
    explain: Any,
    images: Images,
    classes: Labels,
    *,
    model: nn.Module | None = None,
    radius: float = 0.02,
    n_samples: int = 10,
    rng: Rng,
) -> Scores:
    """max over δ in a box of ‖I(x + δ) - I(x)‖ / ‖I(x)‖ (Yeh et al., 2019); 0 is perfectly steady."""
    from captum.metrics import sensitivity_max

    explainer = as_explainer(explain, model)

    def perturb(inputs: Any, perturb_radius: float) -> tuple[Tensor]:
        shown = _one(inputs)
        return (shown + perturb_radius * (2 * torch.rand(shown.shape, generator=rng) - 1).to(shown),)

    found: Scores = sensitivity_max(
        lambda inputs, target: (_like_pictures(explainer, _one(inputs), target),),
        images,
        perturb_func=perturb,
        perturb_radius=radius,
        n_perturb_samples=n_samples,
        target=classes,
    )
    return found


def _like_pictures(explainer: Explainer, images: Images, classes: Labels) -> Images:
    """Maps in the shape of the pictures: every channel an equal part."""
    maps = explainer(images, classes)
    return (maps[:, None] / images.shape[1]).repeat(1, images.shape[1], 1, 1)


def _one(inputs: Any) -> Tensor:
    """The pictures, which Captum passes alone or as a tuple of one."""
    found: Tensor = inputs[0] if isinstance(inputs, tuple) else inputs
    return found
