"""Which extractor, at which size and stride: what fits the pictures and the time."""

from collections.abc import Collection
from typing import Any

from torchsite.training.survey import Decision, Survey

PRETRAINED = "efficientnet_lite0"
DEEPER = ("efficientnet_lite2", "efficientnet_lite1")  # the deepest first
FROM_SCRATCH = "pyramid"
MOST_PRETRAINED = 60
MANY_CLASSES = 40
TRAINING_SHARE = 0.75

# Seconds that training takes for both views of a picture of 64 pixels on two cores, roughly: only the size is
# chosen by it.
ROUGH_COST = {PRETRAINED: 0.012, "efficientnet_lite1": 0.019, "efficientnet_lite2": 0.026, "pyramid": 0.06}
SIZES = (512, 384, 320, 256, 224, 192, 160, 128, 96, 64)
USUAL_SIZE = 128
ENOUGH_EPOCHS = 10
PLENTY_OF_EPOCHS = 30  # what must fit before pictures are taken larger than usual
LARGEST_OF_MANY_CLASSES = 256


def choose_extractor(survey: Survey, pretrained: bool) -> Decision:
    """The one that starts from ImageNet, if it is at hand and can see the pictures."""
    if survey.side < 48:
        return Decision(
            "extractor", "pyramid", f"pictures of {survey.side} pixels are too small for ImageNet's"
        )
    if survey.channels != 3:
        why = f"ImageNet's networks see three channels, these pictures have {survey.channels}"
        return Decision("extractor", "pyramid", why)
    if pretrained:
        return Decision(
            "extractor", PRETRAINED, f"starts from ImageNet: {survey.n_train:,} pictures go further"
        )
    return Decision(
        "extractor",
        "pyramid",
        "learns from nothing; pip install 'torchsite[pretrained]' to start from ImageNet",
    )


def choose_size(survey: Survey, extractor: str, minutes: float) -> Decision:
    """The largest useful size at which enough epochs fit into the time."""
    sizes = (64, 32) if extractor == FROM_SCRATCH else SIZES
    most = LARGEST_OF_MANY_CLASSES if survey.n_classes > MANY_CLASSES else sizes[0]
    useful = [size for size in sizes if size <= min(most, 1.25 * survey.side)] or [sizes[-1]]
    for size in useful:
        epochs = PLENTY_OF_EPOCHS if size > USUAL_SIZE else ENOUGH_EPOCHS
        if epochs * _epoch_seconds(survey, extractor, size) <= 60 * minutes * TRAINING_SHARE:
            break
    why = f"the pictures have about {survey.side}"
    if size != useful[0]:
        larger = useful[useful.index(size) - 1]
        least = PLENTY_OF_EPOCHS if larger > USUAL_SIZE else ENOUGH_EPOCHS
        why += f"; {larger} would leave fewer than {least} epochs in {minutes:g} minutes"
    elif extractor == FROM_SCRATCH and survey.side > 1.25 * sizes[0]:
        why += "; more is too slow to learn from nothing on a few cores"
    return Decision("size", str(size), why)


def _epoch_seconds(survey: Survey, extractor: str, size: int) -> float:
    """How long an epoch takes, roughly: see ROUGH_COST."""
    return survey.n_train * ROUGH_COST[extractor] * (size / 64) ** 2


def choose_deeper(
    usual: Decision, survey: Survey, size: int, minutes: float, deeper: Collection[str]
) -> Decision:
    """The deepest pretrained extractor with which as many epochs fit as help."""
    if usual.chosen != PRETRAINED:
        return usual
    for name in DEEPER:
        seconds = MOST_PRETRAINED * _epoch_seconds(survey, name, size)
        if name in deeper and seconds <= 60 * minutes * TRAINING_SHARE:
            why = f"starts from ImageNet; {minutes:g} minutes allow a deeper one with all epochs that help"
            return Decision("extractor", name, why)
    return usual


def extractor_options(extractor: str, size: int, survey: Survey, minutes: float) -> dict[str, Any]:
    """Features of about 16 × 16 cells, fine enough to point with; finer ones where there is time for them."""
    if extractor == FROM_SCRATCH:
        return {}
    finer = 2 * MOST_PRETRAINED * _epoch_seconds(survey, extractor, size) <= 60 * minutes * TRAINING_SHARE
    return {"stride": 4 if size <= 64 or (size <= USUAL_SIZE and finer) else 8}
