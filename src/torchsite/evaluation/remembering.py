"""One pass for many measures: a model that remembers what it answered for the pictures of this batch.

Measures ask independently of each other, and most ask for the same: the pictures as they are, and the
pictures in their poses. Remembered passes are found by the content of the pictures, so a measure needs to
know nothing of this, and forgotten when the next batch comes.
"""

import hashlib
from typing import Any

from torch import nn

from torchsite.model import SITE, BlackBox, Explanation, ImageClassifier
from torchsite.shapes import Images, Logits


class Remembering(nn.Module):
    """A classifier that answers the same pictures once, until it is told to `forget`."""

    def __init__(self, model: ImageClassifier) -> None:
        super().__init__()
        self.model = model
        self.passes: dict[bytes, Any] = {}

    def forward(self, images: Images) -> Logits:
        """Logits."""
        return self._remembered(images, self.model)

    def forget(self) -> None:
        """Make room for the next batch."""
        self.passes.clear()

    def _remembered(self, images: Images, ask: Any) -> Any:
        pixels = images.detach().cpu().contiguous().numpy()
        key = hashlib.blake2b(repr(pixels.shape).encode() + pixels.tobytes(), digest_size=16).digest()
        if key not in self.passes:
            self.passes[key] = ask(images)
        return self.passes[key]


class RememberingSITE(Remembering):
    """A SITE model whose logits and explanations come from the same remembered pass."""

    def forward(self, images: Images) -> Logits:
        """Logits: the sums of the explanation."""
        return self.explain(images).logits

    def explain(self, images: Images) -> Explanation:
        """The prediction and its reasons."""
        assert isinstance(self.model, SITE)
        explanation: Explanation = self._remembered(images, self.model.explain)
        return explanation


def remembering(model: SITE | BlackBox) -> Remembering:
    """The model with a memory for one batch."""
    return RememberingSITE(model) if isinstance(model, SITE) else Remembering(model)
