"""Which methods apply to which model, and with which options."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from torchsite.evaluation.evaluate import pixels_are_features
from torchsite.model import SITE, BlackBox

# Options of the methods that ask the model many times for each picture.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "extremal_perturbation": {"n_steps": 60},
    "rise": {"n_masks": 128},
    "smooth_grad": {"n_samples": 16},
    "integrated_gradients": {"n_steps": 16},
}

# Where the features are the pixels, the last layer that all passes through is the picture, and these two
# would give the picture back; a hidden layer is the nearest thing to what they are meant for.
READ_HIDDEN = ("grad_cam", "score_cam")


def options_of(method: str, model: nn.Module) -> dict[str, Any]:
    """The options with which a method stands in the tables of this model."""
    options = dict(OPTIONS.get(method, {}))
    if method in READ_HIDDEN and isinstance(model, SITE) and pixels_are_features(model):
        options["layer"] = last_encoder_block(model)
    return options


def last_encoder_block(model: SITE) -> str:
    """The last convolutions of the generator's encoder, before its last halving."""
    blocks = [
        name
        for name, module in model.named_modules()
        if name.startswith(("generator.encoder.layers.", "generator.encoder.stages."))
        and isinstance(module, nn.Sequential)
    ]
    return blocks[-1]


def applies(method: str, model: SITE | BlackBox) -> bool:
    """Whether a table has a row for this method on this model: a black box does not explain itself."""
    return method != "self_explanation" or isinstance(model, SITE)
