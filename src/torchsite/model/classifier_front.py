"""A classifier of the user's own, trained elsewhere, as a feature extractor: cut at a layer.

What the network has learnt is kept: it sees the pictures as it did before, and its weights are tuned at a
small rate or not at all. A new answer, as of other pretrained extractors, makes `depth` features of its maps.
"""

import copy

import torch
from torch import Tensor, nn

from torchsite.errors import ConfigError
from torchsite.layers import Layer, last_spatial_layer, name_of
from torchsite.model.cut import cut
from torchsite.model.extractor import ImageShape
from torchsite.model.fine_tuned import FineTuned, Only
from torchsite.model.lateral_sum import LateralSum
from torchsite.modes import evaluating


class ClassifierFront(FineTuned):
    """A copy of a classifier up to a layer, by module or dotted name; the last spatial one unless told.

    The network gets pictures in [0, 1]; if it was trained on normalised ones, tell the model mean and std.
    """

    def __init__(
        self,
        classifier: nn.Module,
        image_shape: ImageShape,
        layer: Layer | None = None,
        depth: int | None = 16,
        fine_tuning: float = 0.1,
        common: int = 64,
    ) -> None:
        channels = image_shape[0]
        images = _like(classifier, image_shape)
        with torch.enable_grad(), evaluating(classifier):
            name = last_spatial_layer(classifier, images) if layer is None else name_of(classifier, layer)
        body = cut(copy.deepcopy(classifier), [name])
        with torch.no_grad(), evaluating(body):
            (maps,) = body(images)
        if not isinstance(maps, Tensor) or maps.ndim != 4:
            came = tuple(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
            raise ConfigError(
                f"layer {name!r}: expected (batch, depth, rows, cols), got {came}: name another"
            )
        answer = Only() if depth is None else LateralSum([maps.shape[1]], common, depth)
        super().__init__(body, answer, fine_tuning, has_learnt=True)
        self.layer = name
        self.mean, self.std = (0.0,) * channels, (1.0,) * channels


def n_classes_of(classifier: nn.Module, image_shape: ImageShape) -> int:
    """How many logits the classifier gives to a picture."""
    if not isinstance(classifier, nn.Module):
        raise ConfigError(
            f"a classifier: expected a torch.nn.Module, got {type(classifier).__name__}: build it in Python "
            "and load its weights, files of networks are not read"
        )
    with torch.no_grad(), evaluating(classifier):
        logits = classifier(_like(classifier, image_shape))
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        came = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ConfigError(f"a classifier must answer logits (batch, classes), this one answers {came}")
    return logits.shape[1]


def _like(classifier: nn.Module, image_shape: ImageShape) -> Tensor:
    """A picture of the classifier's type, where it is."""
    like = next(iter(classifier.parameters()), torch.zeros(()))
    return torch.zeros(1, *image_shape, dtype=like.dtype, device=like.device)
