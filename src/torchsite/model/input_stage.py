"""The front of every model: normalise the pictures, extract features, and know their shape."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from torchsite.errors import ConfigError, ShapeError
from torchsite.model.config import CUSTOM, check_statistics
from torchsite.model.efficientnet import MEAN, STD
from torchsite.model.extractors import build_extractor
from torchsite.modes import evaluating
from torchsite.shapes import Images

ImageShape = tuple[int, int, int]
Part = str | nn.Module

# Mean and standard deviation of pictures, for extractors that leave no choice; others take those of the data.
STATISTICS: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {"efficientnet_lite0": (MEAN, STD)}


@dataclass(frozen=True, eq=False)
class Front:
    """Normalisation and feature extractor F1, with what the configuration has to say of them."""

    normalise: "Normalise"
    extractor: nn.Module
    name: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    shape: tuple[int, int, int]

    @property
    def identity(self) -> bool:
        """Whether the pixels themselves are the features."""
        return self.name == "identity"


class Normalise(nn.Module):
    """(x - mean) / std per channel: pictures come in [0, 1], whatever the model was trained with."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1), persistent=False)
        self.trivial = all(m == 0 for m in mean) and all(s == 1 for s in std)

    def forward(self, images: Images) -> Images:
        """Centred and scaled pictures; untouched ones where there is nothing to do."""
        return images if self.trivial else (images - self.mean) / self.std


def check_images(images: Images, expected: ImageShape, dtype: torch.dtype) -> None:
    """Pictures must be a batch of the model's own shape and floating-point type."""
    if images.ndim != 4 or tuple(images.shape[1:]) != tuple(expected):
        raise ShapeError(
            f"expected images of shape (batch, {', '.join(map(str, expected))}), got {tuple(images.shape)}: "
            f"resize or convert them first"
        )
    if not images.is_floating_point():
        raise ShapeError(f"expected float images in [0, 1], got {images.dtype}: use `images.float() / 255`")
    if images.dtype != dtype:
        raise ShapeError(
            f"expected {dtype} images, as the weights are, got {images.dtype}: use `images.to({dtype})`"
        )


def dtype_of(model: nn.Module) -> torch.dtype:
    """The floating-point type of a model's weights."""
    return next(model.parameters()).dtype


def feature_shape(
    normalise: nn.Module, extractor: nn.Module, image_shape: ImageShape
) -> tuple[int, int, int]:
    """What the extractor makes of one picture, found by trying; it must be spatial."""
    like = next(iter(extractor.parameters()), torch.zeros(()))
    blank = normalise(torch.zeros(1, *image_shape)).to(like)
    with torch.no_grad(), evaluating(extractor):
        try:
            features = extractor(blank)
        except (RuntimeError, ValueError, IndexError) as error:
            raise ConfigError(
                f"the feature extractor cannot take pictures of {tuple(image_shape)}: {error}"
            ) from error
    if not isinstance(features, Tensor) or features.ndim != 4:
        shape = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise ConfigError(
            f"a feature extractor must give (batch, depth, rows, cols), this one gives {shape}: "
            f"leave out its pooling and classification layers"
        )
    if 0 in features.shape:
        raise ConfigError(f"pictures of {tuple(image_shape)} are too small for this feature extractor")
    return features.shape[1], features.shape[2], features.shape[3]


def custom_part(name: str, described: str, modules: Mapping[str, nn.Module]) -> str | nn.Module:
    """The name in the configuration, or the module that the caller must bring for a custom part."""
    if described != CUSTOM:
        return described
    if name not in modules:
        raise ConfigError(f"this model was built with a {name} of your own: pass it again, `{name}=…`")
    return modules[name]


def named_part(given: Part, build: Callable[[str], nn.Module]) -> tuple[nn.Module, str]:
    """A part built by name, or the caller's own module, with the name that the configuration keeps."""
    return (given, CUSTOM) if isinstance(given, nn.Module) else (build(given), given)


def build_front(
    feature_extractor: Part,
    image_shape: ImageShape,
    mean: Sequence[float] | None,
    std: Sequence[float] | None,
    options: Mapping[str, Any] | None,
) -> Front:
    """Normalisation and extractor for pictures of one shape; pixels that are features stay as they are."""
    if len(image_shape) != 3 or min(image_shape) < 1:
        raise ConfigError(f"image_shape: expected (channels, height, width), got {tuple(image_shape)}")
    channels, height, width = image_shape
    usual_mean, usual_std = _usual_statistics(feature_extractor, channels)
    means = tuple(mean) if mean is not None else usual_mean
    stds = tuple(std) if std is not None else usual_std
    check_statistics(channels, means, stds)
    normalise = Normalise(means, stds)
    extractor, name = named_part(
        feature_extractor, lambda name: build_extractor(name, channels, (height, width), options or {})
    )
    shape = feature_shape(normalise, extractor, image_shape)
    return Front(normalise, extractor, name, means, stds, shape)


def _usual_statistics(extractor: Part, channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if isinstance(extractor, str) and extractor in STATISTICS:
        return STATISTICS[extractor]
    mean, std = (0.0, 1.0) if extractor == "identity" else (0.5, 0.25)
    return (mean,) * channels, (std,) * channels
