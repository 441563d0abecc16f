"""One contract for every explainer: `explain(images, classes) → heatmaps` at the size of the images.

`as_explainer` adapts whatever explains: one of METHODS, a Captum object, a plain function
`(model, images, classes) → maps`, a model that explains itself, or a class to be built on a model. Maps of a
coarser grid are enlarged here, bilinearly with `align_corners=False`, so that every measure transforms and
compares at the resolution of the image.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

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
        """What the model answers, in eval mode and without gradients."""
        model = self.require_model()
        with evaluating(model), torch.no_grad():
            logits: Logits = model(images)
        return logits

    def predict(self, images: Images) -> Labels:
        """The class with the largest logit."""
        return self.logits(images).argmax(dim=1)

    def require_model(self) -> nn.Module:
        """The model, or an error that says how to give one."""
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
        rebuild = partial(_self_explanation, options={} if relative is None else {"relative": relative})
        return Explainer(rebuild(thing), thing, rebuild)
    if relative is not None:
        raise NotApplicableError(f"{_name(thing)} has no relative maps: only a model's own explanation has")
    if isinstance(thing, Explainer):
        return thing if model is None else Explainer(thing.explain, model, thing.rebuild)
    if isinstance(thing, type):
        return _from_class(thing, model)
    if callable(thing) and _n_arguments(thing) == 3:
        return _from_function(thing, model)
    if callable(thing):
        return Explainer(thing, model if model is not None else _model_of(thing))
    if hasattr(thing, "attribute"):
        return Explainer(_captum(thing), model if model is not None else _model_of(thing))
    raise NotApplicableError(
        f"cannot explain with {_name(thing)}: expected a function (images, classes) → maps, a function "
        "(model, images, classes) → maps, an object with .attribute(inputs, target), or a model with .explain"
    )


def pictures_for(model: nn.Module | None, pictures: ImagesLike) -> Images:
    """Pictures in any form that `as_images` takes; files are fitted to what the model sees, if it says so."""
    if isinstance(pictures, Tensor) and pictures.is_floating_point():
        return pictures
    config = getattr(model, "config", None)
    return as_images(pictures, getattr(config, "image_shape", None), getattr(config, "margin", 1.0))


def _from_class(kind: type, model: nn.Module | None) -> Explainer:
    if model is None:
        raise NotApplicableError(f"{kind.__name__} is a class: pass the model to build it on as `model=`")

    def rebuild(other: nn.Module) -> Explain:
        built = kind(other)
        return built if callable(built) else _captum(built)

    return Explainer(rebuild(model), model, rebuild)


def _from_function(function: Callable[..., Tensor], model: nn.Module | None) -> Explainer:
    if model is None:
        raise NotApplicableError(
            f"{_name(function)} takes (model, images, classes): pass the model to explain as `model=`"
        )

    def rebuild(other: nn.Module) -> Explain:
        return lambda images, classes: function(other, images, classes)

    return Explainer(rebuild(model), model, rebuild)


def _self_explanation(model: nn.Module, options: Mapping[str, bool]) -> Explain:
    """A model's own reasons: the heatmaps of its one forward pass."""

    def explain(images: Images, classes: Labels) -> Tensor:
        with torch.no_grad():
            explanation: Any = model.explain(images, **options)  # type: ignore[operator]  # found by hasattr
            maps: Tensor = explanation.heatmaps(size=tuple(images.shape[-2:]), classes=classes)
        return maps

    return explain


def _captum(attribution: Any) -> Explain:
    """Captum's signed attributions, summed over channels."""

    def explain(images: Images, classes: Labels) -> Tensor:
        maps: Tensor = attribution.attribute(images.detach().requires_grad_(True), target=classes)
        return maps.sum(dim=1) if maps.ndim == 4 else maps

    return explain


def _as_heatmaps(maps: Tensor, images: Images) -> Heatmaps:
    expected = f"expected heatmaps of shape ({len(images)}, rows, cols), one per image"
    if not isinstance(maps, Tensor) or maps.ndim != 3 or len(maps) != len(images):
        came = tuple(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
        raise ShapeError(
            f"{expected}, the explainer gave {came}: sum over channels, pick the class asked for"
        )
    if not maps.is_floating_point() or not bool(maps.isfinite().all()):
        raise ShapeError(f"{expected}, finite and floating-point; the explainer gave {_trouble(maps)}")
    maps = maps.detach().to(images.device)
    size = (images.shape[-2], images.shape[-1])
    if maps.shape[-2:] == size:
        return maps
    return F.interpolate(maps.unsqueeze(1), size=size, mode="bilinear", align_corners=False).squeeze(1)


def _trouble(maps: Tensor) -> str:
    if not maps.is_floating_point():
        return str(maps.dtype)
    return f"{int((~maps.isfinite()).sum())} values that are NaN or infinite"


def _n_arguments(function: Callable[..., Any]) -> int:
    """How many positional arguments must be given; 2 if the signature does not say."""
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
