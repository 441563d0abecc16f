"""SITE: a classifier whose prediction is the sum of its explanation (Wang & Wang, NeurIPS 2021).

    z = F1(x)              features
    w_i = G_i(z)           prototypes, one per class
    logit_i = Σ w_i ⊙ z · product_scale

Features and prototypes are bounded: tanh in [-1, 1] gives evidence for and against, sigmoid in [0, 1] only
for. The factor `product_scale` = 1/√d (d features) keeps the logits of learned features of order one, as in
attention; without it they start in the tens, and the network shrinks both factors. For
F1 = identity it is 1, the paper's form.

A map that all classes share changes no probability, so training leaves it free, and a map of evidence may be
negative all over for the class that wins. With `zero_sum` each prototype is taken relative to the mean of
all: the evidence of the classes sums to zero in every cell, and positive evidence is for the class. The
probabilities are the same, so training (`run`) does without.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchsite.data import ImagesLike
from torchsite.layers import Layer
from torchsite.model.base import ImageClassifier
from torchsite.model.classifier_front import ClassifierFront, n_classes_of
from torchsite.model.config import ACTIVATIONS, Part, SiteConfig, describe
from torchsite.model.explanation import Explanation
from torchsite.model.extractor import ImageShape, as_extractor
from torchsite.model.gallery import Gallery, load_gallery, save_gallery
from torchsite.model.generators import build_generator, check_prototypes
from torchsite.modes import evaluating
from torchsite.shapes import Features, Images, Logits, Prototypes
from torchsite.transforms import TransformFamily

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

    @property
    def size_of_prototypes(self) -> Tensor:
        """The mean size of the prototypes."""
        return self.prototypes.detach().abs().mean()

    @property
    def stages(self) -> tuple[Logits, ...]:
        """What is judged: the logits."""
        return (self.logits,)

    def scaled(self, scale: float) -> "Forward":
        """The same with evidence times a factor."""
        return replace(self, evidence=self.evidence * scale)

    def relative(self) -> "Forward":
        """The same with prototypes and evidence relative to their means over all classes."""
        prototypes, evidence = (x - x.mean(1, keepdim=True) for x in (self.prototypes, self.evidence))
        return replace(self, prototypes=prototypes, evidence=evidence)


class SITE(ImageClassifier):
    """A self-explaining classifier: `model(images)` are logits, `model.explain(images)` their reasons.

    Parts are named, or modules of your own; `mean` and `std` are subtracted from and divided out of pictures,
    `family` are the poses to be trained for. With `zero_sum` evidence is relative to all classes, with
    `multi_label` more than one class may be true of a picture. The feature extractor sets the default of what
    is None. A pretrained extractor loads its weights, unless `pretrained` is False. Fails with `ConfigError`
    if parts do not fit together.
    """

    config_class: ClassVar[type[SiteConfig]] = SiteConfig
    config: SiteConfig
    gallery: Gallery | None = None  # exemplars to show prototypes of learned features by

    def __init__(
        self,
        feature_extractor: Part = "pyramid",
        generator: Part = "lateral",
        n_classes: int | None = None,
        *,
        image_shape: ImageShape = (3, 32, 32),
        classes: Sequence[str] | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        margin: float = 1.0,
        family: TransformFamily | None = None,
        activation: str | None = None,
        product_scale: float | None = None,
        zero_sum: bool = False,
        multi_label: bool = False,
        extractor_options: Mapping[str, Any] | None = None,
        generator_options: Mapping[str, Any] | None = None,
        pretrained: bool = True,
    ) -> None:
        parts = {"feature_extractor": feature_extractor, "generator": generator}
        options = {
            "image_shape": image_shape,
            "classes": classes,
            "mean": mean,
            "std": std,
            "margin": margin,
            "family": family,
            "activation": activation,
            "product_scale": product_scale,
            "zero_sum": zero_sum,
            "multi_label": multi_label,
            "extractor_options": extractor_options,
            "generator_options": generator_options,
        }
        config = describe(SiteConfig, parts, n_classes, options)
        super().__init__(config, feature_extractor, pretrained)
        pixels, (depth, rows, cols) = self.pixels_are_features, self.feature_shape
        activation = config.activation or ("sigmoid" if pixels else "tanh")
        gain = as_extractor(self.feature_extractor).evidence_gain
        self.product_scale = config.product_scale or (1.0 if pixels else gain * (depth * rows * cols) ** -0.5)
        self.config = replace(self.config, activation=activation, product_scale=self.product_scale)
        self.bce_slope = BCE_SLOPE[activation]  # maps raw prototypes to logits: (tanh(r) + 1)/2 = σ(2r)
        self.bound_features = nn.Identity() if pixels else ACTIVATIONS[activation]()
        self.generator = (
            build_generator(generator, self.feature_shape, config.n_classes, config.generator_options)
            if isinstance(generator, str)
            else generator
        )
        check_prototypes(self.generator, self.feature_shape, config.n_classes)
        self.bound_prototypes = ACTIVATIONS[activation]()
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # fastest, from birth

    @classmethod
    def from_classifier(
        cls,
        classifier: nn.Module,
        image_shape: ImageShape,
        layer: Layer | Sequence[Layer] | None = None,
        *,
        depth: int = 16,
        fine_tuning: float = 0.1,
        generator: Part = "spatial",
        zero_sum: bool = True,
        **options: Any,
    ) -> Self:
        """A twin that explains itself: its extractor is the classifier up to some layers; the rest learns.

        `layer` is a module of the classifier or its dotted name, or several from fine to coarse; by default
        the last layer of each resolution of an eighth of the picture or less. The classifier stays as it is;
        the copy is tuned at `fine_tuning` of the learning rate, or with 0 not at all. `options` are those of
        `SITE`: the names of the `classes`, the `mean` and `std` that the classifier's pictures were
        normalised with (by default they were not), and so on.
        """
        n_classes = n_classes_of(classifier, image_shape)
        front = ClassifierFront(classifier, image_shape, layer, depth, fine_tuning)
        return cls(front, generator, n_classes, image_shape=image_shape, zero_sum=zero_sum, **options)

    @property
    def takes_any_size(self) -> bool:
        """Whether the generator takes features of any size."""
        return bool(getattr(self.generator, "any_size", False))

    def _save_beside(self, weights: Path) -> None:
        """The gallery, if the model has one."""
        super()._save_beside(weights)
        if self.gallery is not None:
            save_gallery(self.gallery, weights)

    def _load_beside(self, weights: Path) -> None:
        channels, n_classes = self.config.image_shape[0], self.config.n_classes
        self.gallery = load_gallery(weights, self.feature_shape, channels, n_classes)

    def features(self, images: Images) -> Features:
        """z = F1(x), bounded."""
        shorter = getattr(self.feature_extractor, "bounded", None)
        if shorter is not None and self.training and isinstance(self.bound_features, nn.Tanh):
            self._check(images)  # in training nobody looks at what the layer that bounds is given
            return shorter(self.normalise(images)).to(images.dtype)
        return self.bound_features(self.extract(images).to(images.dtype))

    def run(self, images: Images) -> Forward:
        """One pass with everything that the training objective uses.

        Under autocast the networks may run in half precision; bounding and product never do.
        """
        features = self.features(images)
        fused = getattr(self.generator, "fused", None)
        if fused is not None:  # a shorter way to the evidence than by all prototypes
            found: Forward = fused(features, self.bound_prototypes)
            return found.scaled(self.product_scale)
        raw = self.generator(features).to(features.dtype)
        prototypes = self.bound_prototypes(raw)
        evidence = (prototypes * features.unsqueeze(1)).sum(2) * self.product_scale
        return Forward(features, raw, prototypes, evidence)

    def forward(self, images: ImagesLike) -> Logits:
        """Logits, as of any classifier; pictures may come in any form that `as_images` takes."""
        return self.answer(self.prepare(images)).logits

    def answer(self, images: Images, relative: bool | None = None) -> Forward:
        """One pass, relative to all classes or not; None: as the model is configured."""
        run = self.run(images)
        return run.relative() if (self.config.zero_sum if relative is None else relative) else run

    @torch.no_grad()
    def explain(self, images: ImagesLike, relative: bool | None = None) -> Explanation:
        """Predict and explain; in evaluation mode, whatever mode the model is in.

        With `relative` the evidence is that beyond the mean of all classes, without it the paper's; None is
        what the model is configured to show. The probabilities are the same.
        """
        prepared = self.prepare(images)
        with evaluating(self):
            run = self.answer(prepared, relative)
            prototypes = run.prototypes
        return Explanation(
            prepared,
            run.features,
            prototypes,
            run.evidence,
            self.product_scale,
            self.classes,
            self.config.multi_label,
            self.gallery,
        )
