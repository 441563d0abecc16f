"""One contract for every explainer: `explain(images, classes) → heatmaps` at the size of the images.

`as_explainer` adapts whatever explains: one of METHODS, a Captum object, a plain function
`(model, images, classes) → maps`, a model that explains itself, or a class to be built on a model. Maps of a
coarser grid are enlarged here, bilinearly with `align_corners=False`, so that every measure transforms and
compares at the resolution of the image.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchsite.data import ImagesLike, as_images
from torchsite.errors import NotApplicableError, ShapeError
from torchsite.modes import evaluating
from torchsite.shapes import Heatmaps, Images, Labels, Logits

Explain = Callable[[Images, Labels], Tensor]


@dataclass(frozen=True, eq=False)
class Explainer:
    """An explainer, the model it explains, and how to build the same explainer on another model."""

    explain: Explain
    model: nn.Module | None = None
    rebuild: Callable[[nn.Module], Explain] | None = None

    def __call__(self, images: Images, classes: Labels) -> Heatmaps:
        """The heatmaps of the given classes: finite, detached, at the size of the images."""
        with evaluating(self.model), torch.enable_grad():
            maps = self.explain(images, classes)
        return _as_heatmaps(maps, images)

    def logits(self, images: Images) -> Logits:
        """The logits, in eval mode and without gradients."""
        model = self.require_model()
        with evaluating(model), torch.no_grad():
            logits: Logits = model(images)
        return logits

    def predict(self, images: Images) -> Labels:
        """The class with the largest logit."""
        return self.logits(images).argmax(dim=1)

    def require_model(self) -> nn.Module:
        """The model; an error if there is none."""
        if self.model is None:
            raise NotApplicableError(
                "this measure asks the model for predictions, but the explainer came without one: "
                "pass `model=` along with the explainer"
            )
        return self.model

    def on(self, model: nn.Module) -> "Explainer":
        """The same kind of explanation of another model."""
        if self.rebuild is None:
            raise NotApplicableError(
                f"{_name(self.explain)} is bound to its model and cannot be built on another: pass a "
                "function (model, images, classes) → maps, or the explainer's class instead of an instance"
            )
        return Explainer(self.rebuild(model), model, self.rebuild)


def as_explainer(thing: Any, model: nn.Module | None = None, *, relative: bool | None = None) -> Explainer:
    """Adapt anything that explains: see the list at the head of this module.

    `relative` is for models that explain themselves: maps relative to all classes or plain ones; None is what
    the model is configured to show.
    """
    if hasattr(thing, "explain") and isinstance(thing, nn.Module):
        own = partial(_self_explanation, relative=relative)
        return Explainer(own(thing), thing, own)
    if relative is not None:
        raise NotApplicableError(f"{_name(thing)} has no relative maps: only a model's own explanation has")
    if isinstance(thing, Explainer):
        return thing if model is None else replace(thing, model=model)
    if isinstance(thing, type) or (callable(thing) and _n_arguments(thing) == 3):
        if model is None:
            raise NotApplicableError(
                f"{_name(thing)} explains any model: pass the model to build it on as `model=`"
            )
        rebuild = partial(_built_on, thing)
        return Explainer(rebuild(model), model, rebuild)
    if callable(thing) or hasattr(thing, "attribute"):
        return Explainer(_called(thing), model if model is not None else _model_of(thing))
    raise NotApplicableError(
        f"cannot explain with {_name(thing)}: expected a function (images, classes) → maps, a function "
        "(model, images, classes) → maps, an object with .attribute(inputs, target), or a model with .explain"
    )


def pictures_for(model: nn.Module | None, pictures: ImagesLike) -> Images:
    """Pictures in any form that `as_images` takes; files are fitted to the model's pictures, if known."""
    if isinstance(pictures, Tensor) and pictures.is_floating_point():
        return pictures
    config = getattr(model, "config", None)
    return as_images(pictures, getattr(config, "image_shape", None), getattr(config, "margin", 1.0))


def _built_on(thing: Callable[..., Any], model: nn.Module) -> Explain:
    """A class of explainers, or a function of model, images and classes, on this model."""
    return _called(thing(model)) if isinstance(thing, type) else partial(thing, model)


def _self_explanation(model: nn.Module, *, relative: bool | None) -> Explain:
    """A model's own reasons: the heatmaps of its one forward pass."""
    options = {} if relative is None else {"relative": relative}

    def explain(images: Images, classes: Labels) -> Tensor:
        with torch.no_grad():
            explanation: Any = model.explain(images, **options)  # type: ignore[operator]  # found by hasattr
            maps: Tensor = explanation.heatmaps(size=tuple(images.shape[-2:]), classes=classes)
        return maps

    return explain


def _called(thing: Any) -> Explain:
    """An explainer as a function; Captum's signed attributions are summed over channels."""
    if callable(thing):
        return cast(Explain, thing)

    def explain(images: Images, classes: Labels) -> Tensor:
        maps: Tensor = thing.attribute(images.detach().requires_grad_(True), target=classes)
        return maps.sum(dim=1) if maps.ndim == 4 else maps

    return explain


def _as_heatmaps(maps: Tensor, images: Images) -> Heatmaps:
    expected = f"expected heatmaps of shape ({len(images)}, rows, cols), one per image"
    if not isinstance(maps, Tensor) or maps.ndim != 3 or len(maps) != len(images):
        came = tuple(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
        raise ShapeError(
            f"{expected}, the explainer gave {came}: sum over channels, pick the class asked for"
        )
    if not maps.is_floating_point():
        raise ShapeError(f"{expected}, floating-point; the explainer gave {maps.dtype}")
    if n_wrong := int((~maps.isfinite()).sum()):
        raise ShapeError(f"{expected}, finite; the explainer gave {n_wrong} values that are NaN or infinite")
    maps = maps.detach().to(images.device)
    size = (images.shape[-2], images.shape[-1])
    if maps.shape[-2:] == size:
        return maps
    return F.interpolate(maps.unsqueeze(1), size=size, mode="bilinear", align_corners=False).squeeze(1)


def _n_arguments(function: Callable[..., Any]) -> int:
    """How many positional arguments must be given; 2 if there is no signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 2
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters)


def _model_of(thing: Any) -> nn.Module | None:
    """The model an explainer object keeps, under the names in use here and in Captum."""
    for name in ("model", "forward_func"):
        found = getattr(thing, name, None)
        if isinstance(found, nn.Module):
            return found
    return None


def _name(thing: Any) -> str:
    return getattr(thing, "__qualname__", type(thing).__qualname__)
