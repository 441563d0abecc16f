"""The contract of feature extractors F1 with models and training.

Any module that maps (batch, channels, height, width) to features (batch, depth, rows, cols) is an extractor.
One that derives from `FeatureExtractor` can set the attributes below; others have the defaults
(`as_extractor`).

| attribute | default | used by |
|---|---|---|
| `mean`, `std` | None: those of the training data | the model, which normalises the pictures |
| `pixels` | False; True if the features are the pixels | the model, which bounds and scales other features |
| `pretrained`, `load_pretrained()` | False: it starts from random weights | the model, when it is new |
| `evidence_gain` | 1 | the model: the factor of features ⊙ prototypes, beside 1/√d |
| `bounded(images)` | not there | SITE in training: features after a tanh, by a shorter way than through it |
| `parameter_groups()` | one group, at the full learning rate | the optimiser |
| `stride(image_shape)` | found with a larger picture | the model, for pictures of another size |
"""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from torchsite.errors import ConfigError
from torchsite.modes import evaluating
from torchsite.shapes import Features, Images

ImageShape = tuple[int, int, int]
LARGER = 64


@dataclass(frozen=True, eq=False)
class ParameterGroup:
    """Parameters that learn at the same rate: `learning_rate_factor` is their share of the usual one."""

    parameters: tuple[nn.Parameter, ...]
    learning_rate_factor: float = 1.0


class FeatureExtractor(nn.Module):
    """Base class of feature extractors with attributes; the table above lists them."""

    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    pixels: bool = False
    pretrained: bool = False
    evidence_gain: float = 1.0

    def load_pretrained(self) -> None:
        """Load the weights that training starts from; called only if `pretrained`."""
        raise NotImplementedError(f"{type(self).__name__} is pretrained, but load_pretrained is missing")

    def parameter_groups(self) -> list[ParameterGroup]:
        """All parameters of the extractor, by learning rate."""
        return [ParameterGroup(tuple(self.parameters()))]

    def stride(self, image_shape: ImageShape) -> int | None:
        """Pixels from one feature to the next; None if the extractor takes pictures of one size only."""
        return found_stride(self, image_shape)


class PlainExtractor(FeatureExtractor):
    """Any other module as an extractor with the default attributes."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, images: Images) -> Features:
        """The output of the module."""
        return self.module(images)


def as_extractor(module: nn.Module) -> FeatureExtractor:
    """The module itself if it is a `FeatureExtractor`, else wrapped in one."""
    return module if isinstance(module, FeatureExtractor) else PlainExtractor(module)


@torch.no_grad()
def tried(module: nn.Module, shape: tuple[int, ...]) -> Any:
    """The output of a module for zeros: on the meta device, which takes no memory, if that is possible."""
    like = next(iter(module.parameters()), torch.zeros(()))
    zeros = torch.zeros(1, dtype=like.dtype, device=like.device).expand(1, *shape)
    try:
        empty = {id(t): t.to("meta") for t in (*module.parameters(), *module.buffers())}
        return copy.deepcopy(module, empty)(zeros.to("meta"))  # the memo: weights are not copied
    except Exception:  # whatever the reason is that it needs values: with values it says so
        return module(zeros.contiguous())


def feature_shape(extractor: nn.Module, image_shape: ImageShape) -> tuple[int, int, int]:
    """The shape of the features of one picture, found by a pass; they must be spatial."""
    with evaluating(extractor):
        try:
            features = tried(extractor, image_shape)
        except (RuntimeError, ValueError, IndexError, AssertionError) as error:
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


def found_stride(extractor: nn.Module, image_shape: ImageShape) -> int | None:
    """How many pixels more make one row and one column of features more; None if they never do."""
    channels, height, width = image_shape
    try:
        larger = feature_shape(extractor, (channels, height + LARGER, width + LARGER))
    except ConfigError:
        return None
    smaller = feature_shape(extractor, image_shape)
    rows, cols = larger[1] - smaller[1], larger[2] - smaller[2]
    return LARGER // rows if rows == cols and rows > 0 and LARGER % rows == 0 else None
