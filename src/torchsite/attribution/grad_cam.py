"""Channels of a layer, weighted by the mean slope of the logit over each channel.

    heatmap = max(0, Σ_c x_c · mean_u g_c(u)),   g = ∂ logit_y / ∂ x at the layer

The positive part keeps the evidence for the class. The map is brought to image size bilinearly.

Selvaraju et al.: Grad-CAM: visual explanations from deep networks, ICCV 2017.
"""

from captum.attr import LayerGradCam

from torchsite.attribution.contract import LayerAttribution
from torchsite.attribution.layers import resized, watched
from torchsite.shapes import Heatmaps, Images, Labels


class GradCAM(LayerAttribution):
    """Evidence for the class at a layer, coarse and never negative; Captum's `LayerGradCam`."""

    def _explain_layer(self, name: str, images: Images, classes: Labels) -> Heatmaps:
        with watched(self.model, name) as layer:
            method = LayerGradCam(self._logits(classes), layer)
            maps = method.attribute(images, target=classes, relu_attributions=True)
        return resized(maps[:, 0], images.shape[-2:])
