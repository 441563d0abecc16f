"""The one contract of every method: `method(model)(images, classes) → heatmaps`.

Heatmaps are raw, signed where the method has a sign, of the size of the pictures; one per picture. A method
is a value: it holds the model and its options, and explaining changes neither. What a call finds out about
the model (its faster memory layout, its last spatial layer) is forgotten with the call. Pictures never affect
each other: the heatmap of a picture in a batch is its heatmap alone, up to rounding, whatever the
`internal_batch_size`.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from torchsite.attribution.checks import (
    Target,
    as_classes,
    at_least,
    check_classes,
    check_heatmaps,
    check_images,
    check_logits,
)
from torchsite.attribution.frozen import faster_layout, lent
from torchsite.errors import ConfigError
from torchsite.layers import Layer, last_spatial_layer, name_of
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Heatmaps, Images, Labels, Logits

Explain = Callable[[Images, Labels], Heatmaps]
LIVE_PASSES = 10  # for one picture; more are too slow for a page that follows a drag


class Attribution(ABC):
    """A method bound to a model, which sees at most `internal_batch_size` pictures at a time.

    The cost of a method is on its class: about how many `passes` through the network one picture takes (a
    pass with its gradient counts as three) with the options of `budget`, those of tables and of the page.
    """

    passes: ClassVar[int] = 1
    budget: ClassVar[Mapping[str, Any]] = {}

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """A new method; fails where an option has its earlier name."""
        if "chunk" in options:
            raise ConfigError("chunk is now called internal_batch_size, as in Captum")
        return super().__new__(cls)

    def __init__(self, model: nn.Module, *, internal_batch_size: int = 32) -> None:
        if not isinstance(model, nn.Module):
            raise ConfigError(f"model: expected a torch.nn.Module, got {type(model).__name__}")
        at_least(1, internal_batch_size=internal_batch_size)
        self.model = model
        self.internal_batch_size = internal_batch_size
        self._layout = torch.preserve_format

    def layer_for(self, images: Images) -> str | None:
        """The dotted name of the layer that is read; None for methods that work on the pictures."""
        return None

    @classmethod
    def is_slow(cls) -> bool:
        """Whether it takes many passes for each picture."""
        return cls.passes > LIVE_PASSES

    @classmethod
    def n_pictures(cls, n: int, passes: int) -> int:
        """How many of `n` pictures it explains in a table that grants a slow method so many passes in all."""
        return min(n, max(passes // cls.passes, 1)) if cls.is_slow() else n

    def __call__(self, images: Images, classes: Labels) -> Heatmaps:
        """The heatmap of each picture for its class, (batch, rows, cols), at image size."""
        check_images(images)
        check_classes(classes, images)
        if not len(images):
            return images.new_zeros(0, *images.shape[-2:])
        with torch.inference_mode(False), torch.enable_grad(), lent(self.model):
            this_call = copy.copy(self)
            this_call._layout = faster_layout(self.model, images)
            heatmaps = this_call._explain(images.detach().clone(), classes.clone())
        return check_heatmaps(heatmaps.detach().to(images.dtype), images)

    def attribute(self, inputs: Images, target: Target) -> Tensor:
        """Captum's spelling; (batch, 1, rows, cols), which broadcasts over the inputs.

        `target` is one class for all pictures or one per picture. Captum answers in the shape of the inputs;
        a heatmap has one value per position, so the channel axis is 1 here instead of repeated.
        """
        check_images(inputs)
        return self(inputs, as_classes(target, inputs))[:, None]

    @abstractmethod
    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        """The heatmaps of a checked batch; the model is in evaluation mode."""

    def _in_batches(self, explain: Explain, images: Images, classes: Labels) -> Heatmaps:
        parts = zip(
            images.split(self.internal_batch_size), classes.split(self.internal_batch_size), strict=True
        )
        return torch.cat([explain(*part).detach() for part in parts])

    def _logits(self, classes: Labels) -> Callable[[Images], Logits]:
        """The model as a function whose output is checked; it may overwrite its input."""
        highest_class = int(classes.max())

        def logits(images: Images) -> Logits:
            answer = self.model(images.clone(memory_format=self._layout))
            return check_logits(answer, len(images), highest_class)

        return logits


class LayerAttribution(Attribution):
    """A method that reads a layer: by module, by dotted name, or the last spatial one when left out."""

    def __init__(
        self, model: nn.Module, *, layer: Layer | None = None, internal_batch_size: int = 32
    ) -> None:
        super().__init__(model, internal_batch_size=internal_batch_size)
        self._layer_name = None if layer is None else name_of(model, layer)

    def layer_for(self, images: Images) -> str:
        """The dotted name of the layer that is read: the one chosen, or the last spatial one."""
        if self._layer_name is not None:
            return self._layer_name
        with torch.inference_mode(False), torch.enable_grad(), lent(self.model):
            return last_spatial_layer(self.model, images)

    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        name = self.layer_for(images)
        return self._in_batches(lambda *part: self._explain_layer(name, *part), images, classes)

    @abstractmethod
    def _explain_layer(self, name: str, images: Images, classes: Labels) -> Heatmaps:
        """The heatmaps of a part of the batch, read at the layer of this name."""


class Seed:
    """Where a random method takes its numbers from: a `seed`, the same at every call, or a running `rng`."""

    def __init__(self, seed: int | None, rng: Rng | None, stream: str) -> None:
        if seed is not None and rng is not None:
            raise ConfigError(
                "give either rng or seed, not both: a seed starts afresh at every call, an rng runs on"
            )
        self._seed = seed or 0
        self._rng = rng
        self._stream = stream

    def rng(self) -> Rng:
        """The generator for one call."""
        return make_rng(self._seed, "attribution", self._stream) if self._rng is None else self._rng
