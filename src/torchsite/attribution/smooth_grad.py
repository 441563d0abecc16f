"""The gradient, averaged over noisy copies of the picture.

    heatmap(u) = max_c |1/n Σ_k ∂ logit_y(x + ε_k) / ∂ x_c(u)|,   ε_k ~ N(0, σ²),   σ = noise·(max x - min x)

The mean is taken of the signed slopes, as in the paper; the absolute value comes last. The same noise (in
units of σ) serves every picture of a batch: a picture's heatmap does not depend on its neighbours, and the
seed alone decides.

Smilkov et al.: SmoothGrad: removing noise by adding noise, 2017.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from torchsite.attribution.checks import at_least
from torchsite.attribution.contract import Attribution, Seed
from torchsite.randomness import Rng
from torchsite.shapes import Heatmaps, Images, Labels


class SmoothGrad(Attribution):
    """Sensitivity with the fluctuations averaged out.

    Ours rather than Captum's `NoiseTunnel`, which draws from the global random state.
    """

    passes = 48
    budget: ClassVar = {"n_samples": 16}

    def __init__(
        self,
        model: nn.Module,
        *,
        n_samples: int = 50,
        noise: float = 0.15,
        internal_batch_size: int = 32,
        seed: int | None = None,
        rng: Rng | None = None,
    ) -> None:
        super().__init__(model, internal_batch_size=internal_batch_size)
        at_least(1, n_samples=n_samples)
        at_least(0, noise=noise)
        self.n_samples = n_samples
        self.noise = noise
        self._seed = Seed(seed, rng, "smooth_grad")

    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        unit = torch.randn(self.n_samples, *images.shape[1:], generator=self._seed.rng()).to(images)
        return self._in_batches(lambda *part: self._smooth(unit, *part), images, classes)

    def _smooth(self, unit: Tensor, images: Images, classes: Labels) -> Heatmaps:
        logits = self._logits(classes)
        spread = self.noise * (images.amax((1, 2, 3)) - images.amin((1, 2, 3)))
        total = torch.zeros_like(images)
        for noise in unit.split(max(1, self.internal_batch_size // len(images))):
            noisy = images[None] + spread[:, None, None, None] * noise[:, None]
            noisy = noisy.flatten(0, 1).requires_grad_()
            asked = classes.repeat(len(noise))
            score = logits(noisy).gather(1, asked[:, None]).sum()
            total += torch.autograd.grad(score, noisy)[0].unflatten(0, (len(noise), -1)).sum(0)
        return (total / self.n_samples).abs().amax(1)
