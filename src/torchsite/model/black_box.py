"""The black box F2∘F1: the same extractor and the same encoder, with a linear layer where SITE generates.

It has SITE's budget without SITE's constraint, and is what the post-hoc methods are run on for comparison.
Its features pass a ReLU, so that every post-hoc method is defined on it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import nn

from torchsite.errors import ConfigError
from torchsite.model.config import ModelConfig, class_names
from torchsite.model.generators import build_encoder
from torchsite.model.input_stage import ImageShape, Part, build_front, check_images, custom_part, dtype_of
from torchsite.model.pretrained import Pretrained
from torchsite.shapes import Images, Logits
from torchsite.transforms import TransformFamily


class BlackBox(Pretrained):
    """An ordinary classifier of SITE's size; `encoder_of` names the generator whose encoder it has."""

    def __init__(
        self,
        feature_extractor: Part = "pyramid",
        n_classes: int = 10,
        *,
        image_shape: ImageShape = (3, 32, 32),
        classes: Sequence[str] | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        extractor_options: Mapping[str, Any] | None = None,
        encoder_of: str = "lateral",
        encoder_options: Mapping[str, Any] | None = None,
        family: TransformFamily | None = None,
    ) -> None:
        super().__init__()
        front = build_front(feature_extractor, image_shape, mean, std, extractor_options)
        self.normalise, self.feature_extractor = front.normalise, front.extractor
        self.bound_features = nn.Identity() if front.identity else nn.ReLU()
        depth, rows, cols = front.shape
        self.encoder = build_encoder(encoder_of, depth, (rows, cols), encoder_options or {})
        self.classifier = nn.Linear(self.encoder.n_codes, n_classes)
        self.config = ModelConfig(
            kind="black_box",
            image_shape=image_shape,
            classes=class_names(classes, n_classes),
            feature_extractor=front.name,
            extractor_options=dict(extractor_options or {}),
            generator=encoder_of,
            generator_options=dict(encoder_options or {}),
            activation="relu",
            mean=front.mean,
            std=front.std,
            family=family or TransformFamily(),
        )
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # fastest, from birth

    @classmethod
    def from_config(cls, config: ModelConfig, **modules: nn.Module) -> Self:
        """The model a `config.json` describes."""
        if config.kind != "black_box":
            raise ConfigError(f"expected a configuration of a black box, got {config.kind!r}")
        return cls(
            custom_part("feature_extractor", config.feature_extractor, modules),
            config.n_classes,
            image_shape=config.image_shape,
            classes=config.classes,
            mean=config.mean,
            std=config.std,
            extractor_options=config.extractor_options,
            encoder_of=config.generator,
            encoder_options=config.generator_options,
            family=config.family,
        )

    def forward(self, images: Images) -> Logits:
        """Logits."""
        check_images(images, self.config.image_shape, dtype_of(self))
        features = self.bound_features(self.feature_extractor(self.normalise(images)))
        return self.classifier(self.encoder(features))
