"""The first-order share of each position of a layer in the logit: activation times gradient.

    heatmap = Σ_c x_c ⊙ g_c,   g = ∂ logit_y / ∂ x at the layer, signed

For a head that is linear from the layer on, the map at the layer sums to the logit less the head's bias.

Kindermans et al.: Investigating the influence of noise and distractors, 2016; TorchRay's `linear_approx`.
"""

import captum.attr

from torchsite.attribution.contract import LayerAttribution
from torchsite.attribution.layers import resized, watched
from torchsite.shapes import Heatmaps, Images, Labels


class LayerGradientXActivation(LayerAttribution):
    """Signed contributions at a layer, to first order, as in Captum."""

    def _explain_layer(self, name: str, images: Images, classes: Labels) -> Heatmaps:
        with watched(self.model, name) as layer:
            products = captum.attr.LayerGradientXActivation(self._logits(classes), layer).attribute(
                images, target=classes
            )
        return resized(products.sum(1), images.shape[-2:])
