"""EfficientNet-Lite as it trains fastest on a processor.

Batch norms that keep the statistics of ImageNet scale and shift each channel, so they are folded into the
convolutions before them: the same function, less work. The blocks up to an eighth of the picture are frozen
and run without gradients, which would be most of the cost. In the blocks after them the 1×1 convolutions
learn; the depthwise ones stay as ImageNet has them, since the gradient of a 5×5 kernel, and of the bias,
which is found with it, takes twenty times as long as that of the maps (torch 2.13).
"""

from collections.abc import Mapping

from torch import Tensor, nn

from torchsite.model.blocks import DepthwiseConv2d
from torchsite.model.efficientnet import ANSWERS, LITE0, Variant, imagenet_weights, inverted_bottlenecks
from torchsite.shapes import Features, Images

FINE, FROZEN = 0, 1  # numbers of the maps at a quarter and at an eighth of the picture
EPSILON = 1e-3  # that of the published batch norms


class FoldedLite(nn.Module):
    """The maps from a quarter to a 32nd of the picture's resolution.

    The weights of the first two are frozen, so a training step follows no gradients there; a method that asks
    for the gradient of a picture gets it.
    """

    def __init__(self, variant: Variant = LITE0) -> None:
        super().__init__()
        self.variant, self.answers = variant, variant.answers
        self.stem, blocks = inverted_bottlenecks(variant, folded_layer)
        self.blocks = nn.ModuleList(blocks)
        self.n_frozen = self.answers[FROZEN] + 1
        for part in (self.stem, *self.blocks[: self.n_frozen]):
            part.requires_grad_(False)
        for part in self.modules():
            if isinstance(part, DepthwiseConv2d):
                part.requires_grad_(False)

    def forward(self, images: Images) -> list[Features]:
        """Finest first."""
        current, maps = self.stem(images), []
        for number, block in enumerate(self.blocks):
            current = block(current)
            if number in self.answers:
                maps.append(current)
        return maps

    @property
    def widths(self) -> list[int]:
        """The channels of the maps."""
        return [self.variant.widths[stage] for stage in ANSWERS]

    def load_pretrained(self) -> None:
        """The published weights, folded."""
        self.load_state_dict(folded(imagenet_weights(self.variant)))


def folded_layer(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Convolution with a bias, and ReLU6; nothing works in place."""
    form = nn.Conv2d if groups == 1 else DepthwiseConv2d
    conv = form(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups)
    return nn.Sequential(conv, nn.Identity(), nn.ReLU6())


def folded(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convolutions (`….0`) with the batch norms after them (`….1`): w · g/σ, with the bias b - m · g/σ."""
    found = {}
    for name in [name for name in weights if name.endswith(".0.weight")]:
        conv, norm = name.removesuffix(".weight"), name.removesuffix("0.weight") + "1"
        gain = weights[f"{norm}.weight"] / (weights[f"{norm}.running_var"] + EPSILON).sqrt()
        found[name] = weights[name] * gain[:, None, None, None]
        found[f"{conv}.bias"] = weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * gain
    return found
