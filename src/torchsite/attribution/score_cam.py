"""Channels of a layer, weighted by the score of the picture seen through each of them.

    m_k = resize(A_k), scaled to [0, 1];   s_k = logit_y(x ⊙ m_k);   α = softmax_k(s);
    heatmap = max(0, Σ_k α_k A_k)

No gradient is used. The score of the empty picture, which the paper subtracts from every s_k, drops out of
the softmax. A channel that is constant over the picture has no information about places: its mask is 0.

Wang et al.: Score-CAM: score-weighted visual explanations, CVPR workshop 2020, algorithm 1.
"""

import torch
from torch import Tensor

from torchsite.attribution.contract import LayerAttribution
from torchsite.attribution.layers import captured, resized, watched
from torchsite.shapes import Features, Heatmaps, Images, Labels


class ScoreCAM(LayerAttribution):
    """Evidence for the class at a layer by masking instead of slopes; never negative."""

    passes = 64  # one for each channel of the layer, of which there are often so many

    @torch.no_grad()
    def _explain_layer(self, name: str, images: Images, classes: Labels) -> Heatmaps:
        logits = self._logits(classes)
        with watched(self.model, name) as layer, captured(layer) as found:
            logits(images)
            features = found[0]
        weights = self._scores(features, images, classes).softmax(1)
        maps = torch.einsum("nk,nkhw->nhw", weights, features).clamp(min=0)
        return resized(maps, images.shape[-2:])

    def _scores(self, features: Features, images: Images, classes: Labels) -> Tensor:
        """The logit of each picture behind each channel's mask, (batch, depth)."""
        logits = self._logits(classes)
        n_images, depth = features.shape[:2]
        pictures = torch.arange(n_images, device=images.device).repeat_interleave(depth)
        channels = features.flatten(0, 1)
        scores: list[Tensor] = []
        for part, seen in zip(
            pictures.split(self.internal_batch_size), channels.split(self.internal_batch_size), strict=True
        ):
            answers = logits(images[part] * _masks(seen, images)[:, None])
            scores.append(answers.gather(1, classes[part, None]))
        return torch.cat(scores).view(n_images, depth)


def _masks(channels: Heatmaps, images: Images) -> Heatmaps:
    masks = resized(channels, images.shape[-2:])
    low, high = masks.amin((1, 2), keepdim=True), masks.amax((1, 2), keepdim=True)
    return torch.where(high > low, (masks - low) / (high - low), 0)
