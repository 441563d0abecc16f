"""Which methods apply to which model, and with which options."""

from typing import Any

from torch import nn

from torchsite.attribution import METHODS
from torchsite.model import SITE, BlackBox

# Where the features are the pixels, the last layer that all passes through is the picture, and these two
# would give the picture back; a hidden layer is the nearest thing to what they are meant for.
READ_HIDDEN = ("grad_cam", "score_cam")


def options_of(method: str, model: nn.Module) -> dict[str, Any]:
    """The options of a method in the tables of this model."""
    options = dict(METHODS[method].budget)
    if method in READ_HIDDEN and isinstance(model, SITE) and model.pixels_are_features:
        options |= {"layer": layer} if (layer := last_encoder_block(model)) is not None else {}
    return options


def last_encoder_block(model: SITE) -> str | None:
    """The last convolutions of the generator's encoder, before its last halving; None if it has no such."""
    blocks = [
        name
        for name, module in model.named_modules()
        if name.startswith(("generator.encoder.layers.", "generator.encoder.stages."))
        and isinstance(module, nn.Sequential)
    ]
    return blocks[-1] if blocks else None


def applies(method: str, model: SITE | BlackBox) -> bool:
    """Whether a table has a row for this method on this model: a black box does not explain itself."""
    return method != "self_explanation" or isinstance(model, SITE)
