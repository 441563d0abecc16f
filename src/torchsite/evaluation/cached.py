"""One pass for many measures: a model or an explainer is run once on the same pictures.

Most measures need the same passes: of the pictures as they are, and of the pictures in their poses. Outputs
are found by the pixels, so measures and cache are independent.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from torchsite.evaluation.fingerprints import fingerprint
from torchsite.model import SITE, Explanation
from torchsite.shapes import Images, Logits


class Cached(nn.Module):
    """A model, or any function of pictures and classes, that computes each output once, until `forget`."""

    def __init__(self, model: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model
        self.known: dict[str, Any] = {}

    def forward(self, images: Images, *classes: Tensor) -> Any:
        """The model's output, computed now or before."""
        return self._once(self.model, images, *classes)

    def forget(self) -> None:
        """Make room for the next batch."""
        self.known.clear()

    def _once(self, ask: Callable[..., Any], *tensors: Tensor) -> Any:
        key = fingerprint(*tensors)
        if key not in self.known:
            answer = ask(*tensors)
            self.known[key] = answer.detach() if isinstance(answer, Tensor) else answer
        return self.known[key]


class CachedSITE(Cached):
    """A SITE model whose logits and explanations come from the same pass."""

    model: SITE

    def forward(self, images: Images, *_: Tensor) -> Logits:
        """Logits: the sums of the explanation."""
        return self.explain(images).logits

    def explain(self, images: Images) -> Explanation:
        """The prediction and its reasons."""
        explanation: Explanation = self._once(self.model.explain, images)
        return explanation


def cached(model: nn.Module) -> Cached:
    """The model with a cache for one batch."""
    return CachedSITE(model) if isinstance(model, SITE) else Cached(model)
