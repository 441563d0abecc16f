"""The black box F2∘F1: the same extractor and the same encoder, with a linear layer where SITE generates.

It has SITE's budget without SITE's constraint, and is what the post-hoc methods are run on for comparison.
Its features pass a ReLU, so that every post-hoc method is defined on it.
"""

from typing import Any, ClassVar, Self

import torch
from torch import nn

from torchsite.data import ImagesLike
from torchsite.model.base import ImageClassifier
from torchsite.model.config import BlackBoxConfig, Part, SiteArchitecture, describe
from torchsite.model.generators import build_encoder, encoder_options
from torchsite.shapes import Logits


class BlackBox(ImageClassifier):
    """An ordinary classifier of SITE's size.

    `options` are the fields of `BlackBoxConfig`: image_shape, classes, encoder_of and so on. A pretrained
    extractor loads its weights, unless `pretrained` is False.
    """

    config_class: ClassVar[type[BlackBoxConfig]] = BlackBoxConfig
    config: BlackBoxConfig

    def __init__(
        self,
        feature_extractor: Part = "pyramid",
        n_classes: int | None = None,
        *,
        pretrained: bool = True,
        **options: Any,
    ) -> None:
        config = describe(BlackBoxConfig, {"feature_extractor": feature_extractor}, n_classes, options)
        super().__init__(config, feature_extractor, pretrained)
        self.bound_features = nn.Identity() if self.pixels_are_features else nn.ReLU()
        self.encoder = build_encoder(config.encoder_of, self.feature_shape, config.encoder_options)
        self.classifier = nn.Linear(self.encoder.n_codes, config.n_classes)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # fastest, from birth

    @classmethod
    def beside(cls, site: SiteArchitecture, **options: Any) -> Self:
        """The black box of a SITE model's budget: the same extractor, and the encoder of its generator."""
        return cls(
            site.feature_extractor,
            extractor_options=site.extractor_options,
            encoder_of=site.generator,
            encoder_options=encoder_options(site.generator, site.generator_options),
            **options,
        )

    @property
    def takes_any_size(self) -> bool:
        """Whether the encoder takes features of any size."""
        return self.encoder.any_size

    def forward(self, images: ImagesLike) -> Logits:
        """Logits; pictures may come in any form that `as_images` takes."""
        return self.classifier(self.encoder(self.bound_features(self.extract(self.prepare(images)))))
