"""B-cos networks: every layer aligns its weights with its input (Böhle, Fritz & Schiele, CVPR 2022).

    B-cos(x; w) = |cos(x, w)|^(B-1) · ŵᵀx,   ŵ = w / ‖w‖

For a given input the factor |cos|^(B-1) is a number, so each layer is linear in x, and so is the whole
network: logit_i = W_i(x) · x, without a bias, exactly. The explanation is that product before it is summed,
the contributions W_i(x) ⊙ x, found by one backward pass in which the factors are constants. Pictures come as
[x, 1 - x], so that black is something, too. As in the authors' second version (TPAMI 2024), layers are
followed by a norm that neither centres nor shifts, at test time one more number; there is no MaxOut.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from experiments.peers.b_cos_network import BCosConv2d, BCosNetwork, coded, dynamic_linear
from experiments.peers.configs import BCosConfig
from torchsite.data import ImagesLike
from torchsite.model.base import ImageClassifier
from torchsite.model.config import Part, describe
from torchsite.model.explanation import enlarge
from torchsite.modes import evaluating
from torchsite.shapes import Features, Heatmaps, Images, Labels, Logits, Size

SCALE = 20.0  # of the logits, before it is learnt: cosines to the power of B are small


class BCos(ImageClassifier):
    """A B-cos network as a classifier: logits are the means over cells of a last B-cos layer, scaled."""

    config_class: ClassVar[type[BCosConfig]] = BCosConfig
    config: BCosConfig

    def __init__(
        self,
        feature_extractor: Part = "b_cos",
        n_classes: int | None = None,
        *,
        pretrained: bool = True,
        **options: Any,
    ) -> None:
        config = describe(BCosConfig, {"feature_extractor": feature_extractor}, n_classes, options)
        super().__init__(config, feature_extractor, pretrained)
        self.classifier = BCosConv2d(self.feature_shape[0], self.config.n_classes, kernel=1)
        self.scale = nn.Parameter(torch.full((1,), SCALE))
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # fastest, from birth

    @property
    def takes_any_size(self) -> bool:
        """Means over cells can be taken of any number of them."""
        return True

    def forward(self, images: ImagesLike) -> Logits:
        """Logits; pictures may come in any form that `as_images` takes."""
        return self._read_out(self.extract(self.prepare(images)))

    def explain(self, images: ImagesLike, relative: bool | None = None) -> "BCosExplanation":
        """The logits, and on demand the contributions of pixels to any of them.

        With `relative` they are those to logit_i - mean of all logits; None is what the model is configured
        to show.
        """
        prepared = self.prepare(images)
        with evaluating(self), torch.no_grad():
            logits = self(prepared)
        shown = self.config.zero_sum if relative is None else relative
        logits = logits - logits.mean(1, keepdim=True) if shown else logits
        return BCosExplanation(
            prepared, logits, lambda classes: self.contributions(prepared, classes, shown).sum(1)
        )

    def contributions(self, images: Images, classes: Labels, relative: bool = False) -> Images:
        """W(x) ⊙ [x, 1 - x], batch × twice the channels × height × width: it sums to the logit."""
        network = self.feature_extractor
        assert isinstance(network, BCosNetwork)
        with torch.inference_mode(False), torch.enable_grad(), evaluating(self), dynamic_linear(self):
            pictures = coded(images.detach().clone()).requires_grad_()
            logits = self._read_out(network.of_coded(pictures))
            chosen = logits.gather(1, classes[:, None])[:, 0] - (logits.mean(1) if relative else 0)
            (weights,) = torch.autograd.grad(chosen.sum(), pictures)
        return weights * pictures.detach()

    def _read_out(self, features: Features) -> Logits:
        return self.classifier(features).mean((-2, -1)) * self.scale


@dataclass(frozen=True, eq=False)
class BCosExplanation:
    """The logits and what each pixel contributes to them; maps are made for the classes asked for."""

    images: Images
    logits: Logits
    of_classes: Callable[[Labels], Heatmaps]

    def heatmaps(self, *, size: Size | None = None, classes: Labels) -> Heatmaps:
        """One signed map for the class of each picture; its sum is the logit."""
        maps = self.of_classes(classes)
        return maps if size is None else enlarge(maps[:, None], size)[:, 0]
