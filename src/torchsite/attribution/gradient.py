"""The gradient of the class logit with respect to the picture.

    heatmap(u) = max_c |∂ logit_y / ∂ x_c(u)|

How much the logit would change if a pixel changed a little: a measure of sensitivity, not of contribution.

Simonyan, Vedaldi, Zisserman: Deep inside convolutional networks, ICLR workshop 2014.
"""

from captum.attr import Saliency

from torchsite.attribution.contract import Attribution
from torchsite.shapes import Heatmaps, Images, Labels


class Gradient(Attribution):
    """Largest absolute slope of the logit over the channels of each pixel; Captum's `Saliency`."""

    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        return self._in_chunks(self._slopes, images, classes)

    def _slopes(self, images: Images, classes: Labels) -> Heatmaps:
        slopes = Saliency(self._logits(classes)).attribute(images.requires_grad_(), target=classes, abs=True)
        heatmaps: Heatmaps = slopes.amax(1)
        return heatmaps
