"""The gradient, averaged along the straight way from a baseline to the picture, times the difference.

    heatmap(u) = Σ_c (x_c(u) - b) · ∫₀¹ ∂ logit_y(b + α·(x - b)) / ∂ x_c(u) dα

By the fundamental theorem of calculus it is complete: the heatmap sums to logit_y(x) - logit_y(b), up to the
error of the quadrature (Gauss-Legendre, `n_steps` nodes).

Sundararajan, Taly, Yan: Axiomatic attribution for deep networks, ICML 2017.
"""

from typing import ClassVar

from captum.attr import IntegratedGradients as CaptumIntegratedGradients
from torch import nn

from torchsite.attribution.checks import at_least
from torchsite.attribution.contract import Attribution
from torchsite.shapes import Heatmaps, Images, Labels


class IntegratedGradients(Attribution):
    """Contributions against a uniform `baseline` picture; Captum's `IntegratedGradients`."""

    passes = 48
    budget: ClassVar = {"n_steps": 16}

    def __init__(
        self, model: nn.Module, *, baseline: float = 0.0, n_steps: int = 50, internal_batch_size: int = 32
    ) -> None:
        super().__init__(model, internal_batch_size=internal_batch_size)
        at_least(1, n_steps=n_steps)
        self.baseline = baseline
        self.n_steps = n_steps

    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        return self._in_batches(self._integrals, images, classes)

    def _integrals(self, images: Images, classes: Labels) -> Heatmaps:
        integrals = CaptumIntegratedGradients(self._logits(classes)).attribute(
            images.requires_grad_(),
            baselines=self.baseline,
            target=classes,
            n_steps=self.n_steps,
            internal_batch_size=self.internal_batch_size,
        )
        heatmaps: Heatmaps = integrals.sum(1)
        return heatmaps
