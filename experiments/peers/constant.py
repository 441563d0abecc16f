"""Class activation maps as a generator: one prototype of a single cell for each class.

w_i(u) = c_i,     evidence_i(u) = c_i · z(u), a 1×1 convolution
"""

from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchsite.model.site import Forward
from torchsite.shapes import Features, Prototypes, Size


class ConstantGenerator(nn.Module):
    """The same prototypes for every picture, place and pose.

    Evidence is then w_i · z in every cell: class activation maps (Zhou et al. 2016) of a network without a
    bias, complete by construction. The peer to compare SITE with: what prototypes gain by being drawn.
    """

    any_size = True

    def __init__(self, depth: int, size: Size, n_classes: int) -> None:
        super().__init__()
        del size  # any will do
        self.cells = nn.Parameter(0.1 * torch.randn(n_classes, depth))

    def forward(self, features: Features) -> Prototypes:
        """Raw prototypes of all classes."""
        return self._everywhere(self.cells, features)

    def fused(self, features: Features, bound: nn.Module) -> Forward:
        """Raw and bounded prototypes, views of single cells, and evidence; never in half precision."""
        cells, device = bound(self.cells), features.device.type
        with nullcontext() if device == "meta" else torch.autocast(device, enabled=False):
            evidence = F.conv2d(features, cells[:, :, None, None])
        raw, bounded = self._everywhere(self.cells, features), self._everywhere(cells, features)
        return Forward(features, raw, bounded, evidence)

    @staticmethod
    def _everywhere(cells: Tensor, features: Features) -> Prototypes:
        n, _, rows, cols = features.shape
        return cells[None, :, :, None, None].expand(n, -1, -1, rows, cols)
