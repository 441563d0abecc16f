"""A B-cos head: every layer aligns its weights with its input (Böhle, Fritz & Schiele, CVPR 2022).

    B-cos(x; w) = |cos(x, w)|^(B-1) · ŵᵀx,   ŵ = w / ‖w‖

For a given input the factor |cos|^(B-1) is a number, so each layer is linear in x, and so are all together:
logit_i = W_i(z) · [z, 1 - z], without a bias, exactly. The explanation is that product before it is summed,
the contributions W_i(z) ⊙ [z, 1 - z], found by one backward pass in which the factors are constants. z are
the features of any extractor, between 0 and 1, and come as [z, 1 - z], so that what is absent counts, too. As
in the authors' second version (TPAMI 2024), layers are followed by a norm that neither centres nor shifts, at
test time one more number; there is no MaxOut. Theirs are whole networks on pixels: here only the head is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchsite.data import ImagesLike
from torchsite.model.base import ImageClassifier
from torchsite.model.config import ModelConfig, Part, describe
from torchsite.model.explanation import enlarge
from torchsite.modes import evaluating
from torchsite.shapes import Features, Heatmaps, Images, Labels, Logits, Maps, Size

EPSILON = 1e-6
SCALE = 20.0  # of the logits, before it is learnt: cosines to the power of B are small


@dataclass(frozen=True, kw_only=True)
class BCosConfig(ModelConfig):
    """The configuration of a B-cos head; with `zero_sum` its maps are relative to all classes."""

    TITLE: ClassVar[str] = "a B-cos head"

    kind: Literal["b_cos"] = "b_cos"
    width: int = 64
    zero_sum: bool = False


class BCosConv2d(nn.Conv2d):
    """A convolution with unit kernels whose answer is weighed by how well kernel and patch are aligned.

    While `constant` is True, gradients see the weight of each answer as a number: they are W(x).
    """

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, b: float = 2.0) -> None:
        super().__init__(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.b, self.constant = b, False

    def forward(self, maps: Maps) -> Maps:
        """|cos|^(B-1) · ŵᵀx."""
        kernels = self.weight / self.weight.flatten(1).norm(dim=1).clamp_min(EPSILON)[:, None, None, None]
        linear = F.conv2d(maps, kernels, padding=self.padding)
        cosine = linear.abs() / self._patch_norms(maps).to(linear.dtype)
        factor = cosine if self.b == 2 else (cosine + EPSILON) ** (self.b - 1)
        return linear * (factor.detach() if self.constant else factor)

    def _patch_norms(self, maps: Maps) -> Maps:
        """‖x‖ of the patch that each answer looks at."""
        wide = torch.promote_types(maps.dtype, torch.float32)
        squares = maps.square().sum(1, keepdim=True, dtype=wide)
        size, padding = self.kernel_size[0], self.kernel_size[0] // 2
        sums = F.avg_pool2d(squares, size, 1, padding, divisor_override=1)
        return (sums + EPSILON).sqrt()


class UncentredNorm2d(nn.Module):
    """x / √mean(x²) of each channel: no mean is taken away, so at test time it is linear in x."""

    running_square: Tensor

    def __init__(self, channels: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_square", torch.ones(channels))

    def forward(self, maps: Maps) -> Maps:
        """Maps of size one, by the batch in training, else by all batches that were seen."""
        square = self.running_square
        if self.training:
            square = maps.square().mean((0, 2, 3), dtype=square.dtype)
            with torch.no_grad():
                self.running_square.lerp_(square, self.momentum)
        return maps * (square + EPSILON).rsqrt()[:, None, None].to(maps.dtype)


class BCos(ImageClassifier):
    """Two B-cos layers on the features; logits are the means over cells of a third, scaled."""

    config_class: ClassVar[type[BCosConfig]] = BCosConfig
    config: BCosConfig

    def __init__(
        self,
        feature_extractor: Part = "pyramid",
        n_classes: int | None = None,
        *,
        pretrained: bool = True,
        **options: Any,
    ) -> None:
        config = describe(BCosConfig, {"feature_extractor": feature_extractor}, n_classes, options)
        super().__init__(config, feature_extractor, pretrained)
        depth, width = self.feature_shape[0], config.width
        self.layers = nn.Sequential(
            BCosConv2d(2 * depth, width),
            UncentredNorm2d(width),
            BCosConv2d(width, width),
            UncentredNorm2d(width),
        )
        self.classifier = BCosConv2d(width, config.n_classes, kernel=1)
        self.scale = nn.Parameter(torch.full((1,), SCALE))
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # fastest, from birth

    @property
    def takes_any_size(self) -> bool:
        """Means over cells can be taken of any number of them."""
        return True

    def forward(self, images: ImagesLike) -> Logits:
        """Logits; pictures may come in any form that `as_images` takes."""
        return self._read_out(self.coded(self.prepare(images)))

    def coded(self, images: Images) -> Features:
        """[z, 1 - z]: every cell has the same sum over channels, whatever it shows."""
        features = self.extract(images).sigmoid()
        return torch.cat([features, 1 - features], dim=1)

    def explain(self, images: ImagesLike, relative: bool | None = None) -> "BCosExplanation":
        """The logits, and on demand the contributions of features to any of them.

        With `relative` they are those to logit_i - mean of all logits; None is what the model is configured
        to show.
        """
        with evaluating(self), torch.no_grad():
            coded = self.coded(self.prepare(images))
            logits = self._read_out(coded)
        shown = self.config.zero_sum if relative is None else relative
        logits = logits - logits.mean(1, keepdim=True) if shown else logits
        return BCosExplanation(logits, lambda classes: self.contributions(coded, classes, shown).sum(1))

    def contributions(self, coded: Features, classes: Labels, relative: bool = False) -> Features:
        """W(z) ⊙ [z, 1 - z], cell by cell: it sums to the logit."""
        with torch.inference_mode(False), torch.enable_grad(), evaluating(self), dynamic_linear(self):
            seen = coded.detach().clone().requires_grad_()
            logits = self._read_out(seen)
            chosen = logits.gather(1, classes[:, None])[:, 0] - (logits.mean(1) if relative else 0)
            (weights,) = torch.autograd.grad(chosen.sum(), seen)
        return weights * seen.detach()

    def _read_out(self, coded: Features) -> Logits:
        return self.classifier(self.layers(coded)).mean((-2, -1)) * self.scale


@dataclass(frozen=True, eq=False)
class BCosExplanation:
    """The logits and what each cell contributes to them; maps are made for the classes asked for."""

    logits: Logits
    of_classes: Callable[[Labels], Heatmaps]

    def heatmaps(self, *, size: Size | None = None, classes: Labels) -> Heatmaps:
        """One signed map for the class of each picture; its sum is the logit."""
        maps = self.of_classes(classes)
        return maps if size is None else enlarge(maps[:, None], size)[:, 0]


@contextmanager
def dynamic_linear(model: nn.Module) -> Iterator[None]:
    """Gradients of B-cos layers are their W(x) for a while: the factors of all layers are numbers."""
    layers = [module for module in model.modules() if isinstance(module, BCosConv2d)]
    for layer in layers:
        layer.constant = True
    try:
        yield
    finally:
        for layer in layers:
            layer.constant = False
