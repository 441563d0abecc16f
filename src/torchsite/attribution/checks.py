"""Checks of what a method is given and of the heatmaps it returns; each is made once."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torchsite.errors import ConfigError, NotApplicableError, ShapeError
from torchsite.shapes import Heatmaps, Images, Labels

Target = int | Sequence[int] | Tensor


def check_images(images: Images) -> None:
    """Pictures are finite floating-point tensors (batch, channels, height, width)."""
    if not isinstance(images, Tensor):
        raise ShapeError(
            f"images: expected a tensor, got {type(images).__name__}: convert with torch.as_tensor"
        )
    if images.ndim != 4 or 0 in images.shape[1:]:
        raise ShapeError(
            f"images: expected (batch, channels, height, width), got {tuple(images.shape)}: "
            "add the missing axis, for one picture images[None]"
        )
    if not images.is_floating_point():
        raise ShapeError(
            f"images: expected floating point, got {images.dtype}: scale, e.g. images.float() / 255"
        )
    finite = torch.isfinite(images).flatten(1).all(1)
    if not bool(finite.all()):
        bad = (~finite).nonzero().flatten().tolist()
        raise ShapeError(
            f"images: expected finite values, got NaN or infinity in pictures {bad[:8]}: repair them"
        )


def check_classes(classes: Labels, images: Images) -> None:
    """Classes are one int64 index per picture; the upper bound is checked against the logits."""
    if not isinstance(classes, Tensor) or classes.dtype != torch.int64:
        came = str(classes.dtype) if isinstance(classes, Tensor) else type(classes).__name__
        raise ShapeError(
            f"classes: expected an int64 tensor of class indices, got {came}: convert with .long()"
        )
    if classes.shape != images.shape[:1]:
        raise ShapeError(
            f"classes: expected one per picture, ({len(images)},), got {tuple(classes.shape)}: "
            "for one class everywhere use .attribute(images, target=class)"
        )
    if classes.device != images.device:
        raise ShapeError(f"classes are on {classes.device}, images on {images.device}: move one of them")
    if classes.numel() and int(classes.min()) < 0:
        raise ShapeError(f"classes: expected indices from 0, got {int(classes.min())}")


def check_logits(logits: object, n_images: int, highest_class: int) -> Tensor:
    """A classifier answers (batch, classes), and every class asked for is one of them."""
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != n_images:
        came = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise NotApplicableError(
            f"the model: expected logits ({n_images}, classes), got {came}: "
            "wrap it in a module that returns them"
        )
    if highest_class >= logits.shape[1]:
        raise ShapeError(
            f"classes: expected indices below {logits.shape[1]}, the number of logits, got {highest_class}"
        )
    return logits


def check_heatmaps(heatmaps: Heatmaps, images: Images) -> Heatmaps:
    """The heatmaps; raises if one is not finite, or not of the pictures' size."""
    expected = (len(images), *images.shape[-2:])
    if tuple(heatmaps.shape) != expected:
        raise ShapeError(f"heatmaps: expected {expected}, got {tuple(heatmaps.shape)}")
    if not bool(torch.isfinite(heatmaps).all()):
        raise NotApplicableError(
            "the heatmaps hold NaN or infinity: look for them in the model's weights or logits"
        )
    return heatmaps


def as_classes(target: Target, images: Images) -> Labels:
    """Captum's spellings of a target, one class for all or one per picture, as classes."""
    if isinstance(target, bool):
        raise ShapeError("target: expected a class index or one per picture, got a bool")
    if isinstance(target, int):
        return torch.full((len(images),), target, device=images.device)
    if not isinstance(target, Tensor):
        target = torch.as_tensor(list(target), device=images.device)
    return target.reshape(1).expand(len(images)) if target.numel() == 1 else target


def at_least(minimum: float, **options: float) -> None:
    """Refuse options below their minimum, by name."""
    for name, value in options.items():
        if not value >= minimum:
            raise ConfigError(f"{name}: expected at least {minimum}, got {value!r}")


def fraction(**options: float) -> None:
    """Refuse options outside the open interval (0, 1), by name."""
    for name, value in options.items():
        if not 0 < value < 1:
            raise ConfigError(f"{name}: expected a fraction between 0 and 1, got {value!r}")
