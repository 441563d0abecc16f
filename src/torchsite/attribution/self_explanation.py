"""The explanation that a model gives of itself, behind the contract of the post-hoc methods.

A model that explains itself has `explain(images)`, and what it answers has `heatmaps(size=…, classes=…)`.
That is all that is asked here: nothing is known of how the model comes by its reasons.
"""

from typing import Protocol, cast, runtime_checkable

import torch
from torch import nn

from torchsite.attribution.contract import Attribution
from torchsite.errors import NotApplicableError
from torchsite.shapes import Heatmaps, Images, Labels, Size


class Explains(Protocol):
    """What a self-explaining model answers."""

    def heatmaps(self, *, size: Size, classes: Labels) -> Heatmaps:
        """One heatmap per picture, for its class, at the given size."""


@runtime_checkable
class SelfExplaining(Protocol):
    """A model that gives its reasons along with its prediction."""

    def explain(self, images: Images) -> Explains:
        """The reasons for the predictions of a batch."""


class SelfExplanation(Attribution):
    """The model's own heatmaps: no approximation, no second model."""

    def __init__(self, model: nn.Module, *, chunk: int = 32) -> None:
        super().__init__(model, chunk=chunk)
        if not isinstance(model, SelfExplaining):
            raise NotApplicableError(
                f"{type(model).__name__} has no explain(images), it does not explain itself: "
                "use a post-hoc method"
            )

    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        return self._in_chunks(self._reasons, images, classes)

    @torch.no_grad()
    def _reasons(self, images: Images, classes: Labels) -> Heatmaps:
        self._logits(classes)(images[:1])
        explanation = cast(SelfExplaining, self.model).explain(images)
        size = (images.shape[-2], images.shape[-1])
        return explanation.heatmaps(size=size, classes=classes)
