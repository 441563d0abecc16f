"""Prototypes of parts: "this looks like that" (ProtoPNet: Chen et al. 2019), learnt by classification.

    s_j(u) = log( (‖z(u) - p_j‖² + 1) / (‖z(u) - p_j‖² + ε) )        how much cell u looks like part j
    logit_i = Σ_j V_ij max_u s_j(u),     V_ij = 1 for the parts of class i, -1/2 for those of others
    heatmap_i(u) = Σ_j V_ij s_j(u)                                   ProtoPNet's activation maps, weighed

Each class has some parts of its own, points among the features. The logit looks at the best cell of each part
alone, so the maps are no summands of it: they do not sum to the logit, unlike those of the other models here.
ProtoPNet's costs that cluster and separate, its projection on pictures and its last stage are left out.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from torchsite.data import ImagesLike
from torchsite.model.base import ImageClassifier
from torchsite.model.config import ModelConfig, Part, describe
from torchsite.model.explanation import enlarge
from torchsite.modes import evaluating
from torchsite.shapes import Heatmaps, Labels, Logits, Maps, Size

EPSILON = 1e-4
AGAINST = -0.5
Similarities = Float[Tensor, "batch parts rows cols"]


@dataclass(frozen=True, kw_only=True)
class PrototypePartsConfig(ModelConfig):
    """The configuration of a classifier by parts: how many each class has, and how its maps are shown."""

    TITLE: ClassVar[str] = "a classifier by prototypes of parts"

    kind: Literal["prototype_parts"] = "prototype_parts"
    n_parts: int = 4
    zero_sum: bool = False


class PrototypeParts(ImageClassifier):
    """A classifier that asks whether parts of its classes are there; `model.explain(images)` says where."""

    config_class: ClassVar[type[PrototypePartsConfig]] = PrototypePartsConfig
    config: PrototypePartsConfig
    connections: Tensor

    def __init__(
        self,
        feature_extractor: Part = "pyramid",
        n_classes: int | None = None,
        *,
        pretrained: bool = True,
        **options: Any,
    ) -> None:
        config = describe(PrototypePartsConfig, {"feature_extractor": feature_extractor}, n_classes, options)
        super().__init__(config, feature_extractor, pretrained)
        n_parts, own = config.n_parts, torch.eye(config.n_classes)
        self.parts = nn.Parameter(torch.rand(config.n_classes * n_parts, self.feature_shape[0]))
        self.register_buffer(
            "connections", (own + AGAINST * (1 - own)).repeat_interleave(n_parts, 1), persistent=False
        )
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # fastest, from birth

    @property
    def takes_any_size(self) -> bool:
        """The best of any number of cells can be found."""
        return True

    def similarities(self, images: ImagesLike) -> Similarities:
        """s_j(u) of every part and cell."""
        images = self.prepare(images)
        features = self.extract(images).to(images.dtype).sigmoid()
        products = F.conv2d(features, self.parts[:, :, None, None])
        lengths = features.square().sum(1, keepdim=True) + self.parts.square().sum(1)[:, None, None]
        distances = (lengths - 2 * products).clamp_min(0)
        return ((distances + 1) / (distances + EPSILON)).log()

    def forward(self, images: ImagesLike) -> Logits:
        """Logits; pictures may come in any form that `as_images` takes."""
        return self._logits(self.similarities(images))

    @torch.no_grad()
    def explain(self, images: ImagesLike, relative: bool | None = None) -> "PartsExplanation":
        """Logits and activation maps; relative to all classes or not, None: as the model is configured."""
        with evaluating(self):
            found = self.similarities(images)
        connections = self.connections.to(found)
        if self.config.zero_sum if relative is None else relative:
            connections = connections - connections.mean(0)
        return PartsExplanation(found, connections)

    def _logits(self, found: Similarities) -> Logits:
        return found.amax((-2, -1)) @ self.connections.to(found).T


@dataclass(frozen=True, eq=False)
class PartsExplanation:
    """How much each cell looks like each part, and how much each part speaks for each class."""

    similarities: Similarities
    connections: Float[Tensor, "classes parts"]

    @property
    def logits(self) -> Logits:
        """Of the best cell of each part."""
        return self.similarities.amax((-2, -1)) @ self.connections.T

    @property
    def activations(self) -> Maps:
        """Σ_j V_ij s_j(u), for every class."""
        return torch.einsum("kj,njhw->nkhw", self.connections, self.similarities)

    def heatmaps(self, *, size: Size | None = None, classes: Labels) -> Heatmaps:
        """One map for the class of each picture."""
        maps = torch.einsum("nj,njhw->nhw", self.connections[classes], self.similarities)
        return maps if size is None else enlarge(maps[:, None], size)[:, 0]
