"""SITE: a classifier whose prediction is the sum of its explanation (Wang & Wang, NeurIPS 2021).

    z = F1(x)              features
    w_i = G_i(z)           prototypes, one per class
    logit_i = Σ w_i ⊙ z · product_scale

Features and prototypes are bounded: tanh in [-1, 1] gives evidence for and against, sigmoid in [0, 1] only
for. The factor `product_scale` = 1/√d (d features) keeps the logits of learned features of order one, as in
attention; without it they start in the tens, and the network answers by shrinking both factors. For
F1 = identity it is 1, the paper's form.

A map that all classes share changes no probability, so training leaves it free, and a map of evidence may be
negative all over for the class that wins. With `zero_sum` the model answers with each prototype relative to
the mean of all: the evidence of the classes sums to zero in every cell, and what is positive speaks for the
class. The probabilities are the same, so training (`run`) does without.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchsite.errors import ConfigError
from torchsite.model.config import ModelConfig, class_names
from torchsite.model.explanation import Explanation
from torchsite.model.generators import build_generator, check_prototypes
from torchsite.model.input_stage import (
    ImageShape,
    Part,
    build_front,
    check_images,
    custom_part,
    dtype_of,
    named_part,
)
from torchsite.model.pretrained import Pretrained
from torchsite.modes import evaluating
from torchsite.shapes import Features, Images, Logits, Prototypes
from torchsite.transforms import TransformFamily

ACTIVATIONS: Mapping[str, type[nn.Module]] = {"sigmoid": nn.Sigmoid, "tanh": nn.Tanh}
BCE_SLOPE: Mapping[str, float] = {"sigmoid": 1.0, "tanh": 2.0}


@dataclass(frozen=True, eq=False)
class Forward:
    """One training pass: bounded features, raw and bounded prototypes, evidence per class and cell."""

    features: Features
    raw_prototypes: Prototypes
    prototypes: Prototypes
    evidence: Float[Tensor, "batch classes rows cols"]

    @property
    def logits(self) -> Logits:
        """The sums of the evidence."""
        return self.evidence.sum((-2, -1))

    def relative(self) -> "Forward":
        """The same with prototypes and evidence relative to their means over all classes."""
        prototypes, evidence = (x - x.mean(1, keepdim=True) for x in (self.prototypes, self.evidence))
        return replace(self, prototypes=prototypes, evidence=evidence)


class SITE(Pretrained):
    """A self-explaining classifier: `model(images)` are logits, `model.explain(images)` their reasons."""

    def __init__(
        self,
        feature_extractor: Part = "pyramid",
        generator: Part = "lateral",
        n_classes: int = 10,
        *,
        image_shape: ImageShape = (3, 32, 32),
        classes: Sequence[str] | None = None,
        activation: str | None = None,
        product_scale: float | None = None,
        zero_sum: bool = False,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        extractor_options: Mapping[str, Any] | None = None,
        generator_options: Mapping[str, Any] | None = None,
        family: TransformFamily | None = None,
    ) -> None:
        super().__init__()
        front = build_front(feature_extractor, image_shape, mean, std, extractor_options)
        activation = activation or ("sigmoid" if front.identity else "tanh")
        if activation not in BCE_SLOPE:
            raise ConfigError(f"activation: expected one of {', '.join(BCE_SLOPE)}, got {activation!r}")
        self.normalise, self.feature_extractor = front.normalise, front.extractor
        self.bound_features = nn.Identity() if front.identity else ACTIVATIONS[activation]()
        self.feature_shape = depth, rows, cols = front.shape
        options = dict(generator_options or {})
        self.generator, generator_name = named_part(
            generator, lambda name: build_generator(name, depth, (rows, cols), n_classes, options)
        )
        check_prototypes(self.generator, front.shape, n_classes)
        self.bound_prototypes = ACTIVATIONS[activation]()
        default_scale = 1.0 if front.identity else (depth * rows * cols) ** -0.5
        self.config = ModelConfig(
            kind="site",
            image_shape=image_shape,
            classes=class_names(classes, n_classes),
            feature_extractor=front.name,
            extractor_options=dict(extractor_options or {}),
            generator=generator_name,
            generator_options=options,
            activation=activation,  # type: ignore[arg-type]  # checked above
            product_scale=product_scale if product_scale is not None else default_scale,
            zero_sum=zero_sum,
            mean=front.mean,
            std=front.std,
            family=family or TransformFamily(),
        )
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # fastest, from birth

    @classmethod
    def from_config(cls, config: ModelConfig, **modules: nn.Module) -> Self:
        """The model a `config.json` describes."""
        if config.kind != "site":
            raise ConfigError(f"expected a configuration of a SITE model, got {config.kind!r}")
        return cls(
            custom_part("feature_extractor", config.feature_extractor, modules),
            custom_part("generator", config.generator, modules),
            config.n_classes,
            image_shape=config.image_shape,
            classes=config.classes,
            activation=config.activation,
            product_scale=config.product_scale,
            zero_sum=config.zero_sum,
            mean=config.mean,
            std=config.std,
            extractor_options=config.extractor_options,
            generator_options=config.generator_options,
            family=config.family,
        )

    @property
    def bce_slope(self) -> float:
        """The factor that maps raw prototypes to logits of values in [0, 1]: (tanh(r) + 1)/2 = σ(2r)."""
        return BCE_SLOPE[self.config.activation]

    def features(self, images: Images) -> Features:
        """z = F1(x), bounded."""
        check_images(images, self.config.image_shape, dtype_of(self))
        return self.bound_features(self.feature_extractor(self.normalise(images)).to(images.dtype))

    def run(self, images: Images) -> Forward:
        """One pass with everything that the training objective looks at.

        Under autocast the networks may run in half precision; bounding and product never do.
        """
        features = self.features(images)
        raw = self.generator(features).to(features.dtype)
        prototypes = self.bound_prototypes(raw)
        evidence = (prototypes * features.unsqueeze(1)).sum(2) * self.config.product_scale
        return Forward(features, raw, prototypes, evidence)

    def forward(self, images: Images) -> Logits:
        """Logits, as of any classifier."""
        return self.answer(images).logits

    def answer(self, images: Images, relative: bool | None = None) -> Forward:
        """One pass as the model answers: relative to all classes or not; None: as it is configured."""
        run = self.run(images)
        return run.relative() if (self.config.zero_sum if relative is None else relative) else run

    @torch.no_grad()
    def explain(self, images: Images, relative: bool | None = None) -> Explanation:
        """Predict and keep the reasons; in evaluation mode, whatever mode the model is in.

        With `relative` the evidence is that beyond the mean of all classes, without it the paper's; None is
        what the model is configured to show. The probabilities are the same.
        """
        with evaluating(self):
            run = self.answer(images, relative)
        return Explanation(
            images, run.features, run.prototypes, run.evidence, self.config.product_scale, self.classes
        )
