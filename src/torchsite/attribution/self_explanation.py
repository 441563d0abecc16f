"""The explanation that a model gives of itself, behind the contract of the post-hoc methods.

A model that explains itself has `explain(images)`, and its result has `heatmaps(size=…, classes=…)`.
Nothing else of the model is used here. A model that knows two
kinds of maps, relative to all classes or not, takes `explain(images, relative=…)`.
"""

import inspect
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import nn

from torchsite.attribution.contract import Attribution
from torchsite.errors import NotApplicableError
from torchsite.shapes import Heatmaps, Images, Labels, Size


class Explains(Protocol):
    """The result of a self-explaining model."""

    def heatmaps(self, *, size: Size, classes: Labels) -> Heatmaps:
        """One heatmap per picture, for its class, at the given size."""


@runtime_checkable
class SelfExplaining(Protocol):
    """A model that gives its reasons along with its prediction."""

    def explain(self, images: Images, **options: Any) -> Explains:
        """The reasons for the predictions of a batch."""


class SelfExplanation(Attribution):
    """The model's own heatmaps: no approximation, no second model.

    `relative`: maps relative to all classes (True) or plain ones (False); by default as the model is
    configured.
    """

    def __init__(
        self, model: nn.Module, *, relative: bool | None = None, internal_batch_size: int = 32
    ) -> None:
        super().__init__(model, internal_batch_size=internal_batch_size)
        if not isinstance(model, SelfExplaining):
            raise NotApplicableError(
                f"{type(model).__name__} has no explain(images), it does not explain itself: "
                "use a post-hoc method"
            )
        if relative is not None and "relative" not in inspect.signature(model.explain).parameters:
            raise NotApplicableError(
                f"{type(model).__name__}.explain takes no `relative`, it knows one kind of maps: leave it out"
            )
        self.options: dict[str, Any] = {} if relative is None else {"relative": relative}

    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        return self._in_batches(self._reasons, images, classes)

    @torch.no_grad()
    def _reasons(self, images: Images, classes: Labels) -> Heatmaps:
        self._logits(classes)(images[:1])
        explanation = cast(SelfExplaining, self.model).explain(images, **self.options)
        size = (images.shape[-2], images.shape[-1])
        return explanation.heatmaps(size=size, classes=classes)
