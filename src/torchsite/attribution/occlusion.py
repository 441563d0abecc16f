"""The fall of the logit when a window of the picture is covered.

    heatmap(u) = mean over windows W ∋ u of [logit_y(x) - logit_y(x with W set to the baseline)]

Windows slide by `stride` and cover all channels.

Zeiler, Fergus: Visualizing and understanding convolutional networks, ECCV 2014.
"""

from captum.attr import Occlusion as CaptumOcclusion
from torch import nn

from torchsite.attribution.checks import at_least
from torchsite.attribution.contract import Attribution
from torchsite.shapes import Heatmaps, Images, Labels


class Occlusion(Attribution):
    """Signed importance of each window; Captum's `Occlusion`.

    The window is a quarter of the shorter side when left out, the stride half a window.
    """

    passes = 50

    def __init__(
        self,
        model: nn.Module,
        *,
        window: int | None = None,
        stride: int | None = None,
        baseline: float = 0.0,
        internal_batch_size: int = 32,
    ) -> None:
        super().__init__(model, internal_batch_size=internal_batch_size)
        at_least(1, **{name: n for name, n in {"window": window, "stride": stride}.items() if n is not None})
        self.window = window
        self.stride = stride
        self.baseline = baseline

    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        return self._in_batches(self._falls, images, classes)

    def _falls(self, images: Images, classes: Labels) -> Heatmaps:
        n_channels, *sides = images.shape[1:]
        window = min(self.window or max(1, min(sides) // 4), *sides)
        stride = min(self.stride or max(1, window // 2), window)
        falls = CaptumOcclusion(self._logits(classes)).attribute(
            images,
            sliding_window_shapes=(n_channels, window, window),
            strides=(n_channels, stride, stride),
            baselines=self.baseline,
            target=classes,
            perturbations_per_eval=max(1, self.internal_batch_size // len(images)),
        )
        heatmaps: Heatmaps = falls[:, 0]
        return heatmaps
