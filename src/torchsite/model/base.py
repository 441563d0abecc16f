"""The common part of all models: check and normalise pictures, then extract features."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor, nn

from torchsite.data import Dataset, ImagesLike, as_images
from torchsite.errors import DataError, ShapeError
from torchsite.model.config import ModelConfig, Part, class_names
from torchsite.model.extractor import FeatureExtractor, ImageShape, as_extractor, feature_shape
from torchsite.model.extractors import build_extractor
from torchsite.model.pretrained import Pretrained
from torchsite.shapes import Features, Images

USUAL_MEAN, USUAL_STD = 0.5, 0.25


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


class ImageClassifier(Pretrained):
    """A model that starts with a feature extractor: by name, or a module of the caller's own."""

    def __init__(self, config: ModelConfig, feature_extractor: Part, pretrained: bool) -> None:
        super().__init__()
        if isinstance(feature_extractor, str):
            extractor = build_extractor(feature_extractor, config.image_shape, config.extractor_options)
            if extractor.pretrained and pretrained:
                extractor.load_pretrained()
            self.feature_extractor: nn.Module = extractor
        else:
            self.feature_extractor, extractor = feature_extractor, as_extractor(feature_extractor)
        mean, std = _statistics(config, extractor)
        self.config = replace(config, mean=mean, std=std)
        self.normalise = Normalise(mean, std)
        self.feature_shape = feature_shape(extractor, config.image_shape)

    @property
    def pixels_are_features(self) -> bool:
        """Whether the extractor hands on the pictures as they are."""
        return as_extractor(self.feature_extractor).pixels

    @cached_property
    def stride(self) -> int | None:
        """Pixels from one feature to the next; None if the extractor takes pictures of one size only."""
        return as_extractor(self.feature_extractor).stride(self.config.image_shape)

    @property
    def takes_any_size(self) -> bool:
        """Whether what comes after the extractor takes features of any size."""
        raise NotImplementedError

    @property
    def any_size(self) -> bool:
        """Whether pictures may be of another size than `config.image_shape`: multiples of the stride."""
        return self.takes_any_size and self.stride is not None

    def prepare(self, pictures: ImagesLike) -> Images:
        """Float tensors as they are, all else as float images in [0, 1]: see `as_images`."""
        if isinstance(pictures, Tensor) and pictures.is_floating_point():
            return pictures
        like = next(self.parameters())
        return as_images(pictures, self.config.image_shape, self.config.margin).to(like.device, like.dtype)

    def check_data(self, data: Dataset) -> None:
        """Fail with `DataError` unless pictures, classes and the kind of labels are those of the model."""
        shape, kinds = tuple(data.images.shape[1:]), ("one class for each picture", "several labels or none")
        labelled = data.multi_hot is not None
        if shape != tuple(self.config.image_shape):
            raise DataError(
                f"the model takes pictures of {self.config.image_shape}, {data.title} has {shape}: "
                "load the data with the model's size, or build the model for this data"
            )
        if self.config.multi_label != labelled:
            raise DataError(
                f"the model answers with {kinds[self.config.multi_label]}, {data.title} has "
                f"{kinds[labelled]}: build the model with multi_label={labelled}"
            )
        names, unnamed = self.config.classes, class_names(None, self.config.n_classes)
        if len(data.classes) != len(names) or names not in (unnamed, tuple(data.classes)):
            raise DataError(
                f"the model knows {len(names)} classes {list(names)}, {data.title} has {len(data.classes)}: "
                f"{list(data.classes)}: build the model for this data"
            )

    def extract(self, images: Images) -> Features:
        """The output of the extractor for pictures that this model can take."""
        self._check(images)
        return self.feature_extractor(self.normalise(images))

    def _check(self, images: Images) -> None:
        """Pictures must be a batch of the model's own channels, size and floating-point type."""
        shape = self.config.image_shape
        if tuple(images.shape[1:]) != shape or images.ndim != 4:
            self._check_size(images, shape)
        if not images.is_floating_point():
            raise ShapeError(
                f"expected float images in [0, 1], got {images.dtype}: use `images.float() / 255`"
            )
        if images.dtype != (dtype := dtype_of(self)):
            raise ShapeError(
                f"expected {dtype} images, as the weights are, got {images.dtype}: use `images.to({dtype})`"
            )

    def _check_size(self, images: Images, shape: ImageShape) -> None:
        batch = images.ndim == 4 and images.shape[1] == shape[0]
        if not (batch and self.any_size):
            why = "; parts of this model need pictures of one size" if batch else ""
            raise ShapeError(
                f"expected images of shape (batch, {', '.join(map(str, shape))}), got {tuple(images.shape)}: "
                f"resize or convert them first{why}"
            )
        assert self.stride is not None
        if any(side < 1 or side % self.stride for side in images.shape[2:]):
            raise ShapeError(
                f"expected images of shape (batch, {', '.join(map(str, shape))}), or with sides that are "
                f"multiples of the stride, {self.stride}, got {tuple(images.shape)}: crop or pad them"
            )


def _statistics(
    config: ModelConfig, extractor: FeatureExtractor
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of pictures: as configured, else the extractor's, else the usual ones."""
    channels = config.image_shape[0]
    means = (config.mean, extractor.mean, (USUAL_MEAN,) * channels)
    stds = (config.std, extractor.std, (USUAL_STD,) * channels)
    return next(mean for mean in means if mean is not None), next(std for std in stds if std is not None)


def dtype_of(model: nn.Module) -> torch.dtype:
    """The floating-point type of a model's weights."""
    return next(model.parameters()).dtype
