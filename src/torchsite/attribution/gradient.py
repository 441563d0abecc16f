"""The gradient of the class logit with respect to the picture.

    heatmap(u) = max_c |∂ logit_y / ∂ x_c(u)|

How much the logit would change if a pixel changed a little: a measure of sensitivity, not of contribution.

Simonyan, Vedaldi, Zisserman: Deep inside convolutional networks, ICLR workshop 2014.
"""

import captum.attr

from torchsite.attribution.contract import Attribution
from torchsite.shapes import Heatmaps, Images, Labels


class Saliency(Attribution):
    """Largest absolute slope of the logit over the channels of each pixel, as in Captum."""

    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        return self._in_batches(self._slopes, images, classes)

    def _slopes(self, images: Images, classes: Labels) -> Heatmaps:
        saliency = captum.attr.Saliency(self._logits(classes))
        slopes = saliency.attribute(images.requires_grad_(), target=classes, abs=True)
        heatmaps: Heatmaps = slopes.amax(1)
        return heatmaps
