"""The pictures and maps that a report shows, as arrays: the model is asked here, drawing needs it no more.

Which pictures they are stands in the result of `examine`: one example of each class, and the most confident
mistakes. The pose of a picture is the first of those in which it was measured.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from torchsite.attribution import METHODS
from torchsite.data import Dataset, to_float
from torchsite.errors import DataError, NotApplicableError
from torchsite.evaluation.methods import applies, options_of
from torchsite.metrics import Poses
from torchsite.metrics.carried import Carried, carry_and_renew
from torchsite.model import SITE, BlackBox, Explanation
from torchsite.results import Result
from torchsite.shapes import Heatmaps, Images, Labels
from torchsite.training.run_folder import fingerprint
from torchsite.transforms import AffineTransform, Transform, TransformFamily

Entries = Sequence[Mapping[str, Any]]

BESIDE = ("gradient", "grad_cam")  # shown beside SITE's own, or alone on a black box
MOST_EXAMPLES = 10
N_SAMPLES = 10
N_ANGLES = 7
N_EXPLAINED = 4  # pictures of which the evidence for all classes is shown


class MovedExamples(NamedTuple):
    """Pictures, the same moved, and by method I(x), T(I x), I(T x)."""

    images: Images
    moved: Images
    maps: Mapping[str, Carried]


class TurnedExample(NamedTuple):
    """One picture at several angles, and by method T(I x) and I(T x) at each."""

    angles: Tensor
    moved: Images
    maps: Mapping[str, Carried]


class MistakeMaps(NamedTuple):
    """The evidence for the true class, for the one that was said, and their difference."""

    true: Heatmaps
    said: Heatmaps
    contrast: Heatmaps


class Mistakes(NamedTuple):
    """Wrongly classified pictures as the model saw them; a black box gives no reasons."""

    images: Images
    maps: MistakeMaps | None


@dataclass(frozen=True, eq=False)
class Illustrations:
    """All pictures and maps of a report; `samples` are the first pictures of each class."""

    samples: tuple[Images, ...]
    moving: MovedExamples
    turning: TurnedExample
    classes: Explanation | None
    mistakes: Mapping[str, Mistakes]


class LabelMaps(NamedTuple):
    """Pictures, each with the map of one label, as they are and moved; a black box has no maps."""

    images: Images
    maps: Heatmaps | None
    moved: Images
    moved_maps: Heatmaps | None


class LabelIllustrations(NamedTuple):
    """The pictures of a report on several labels."""

    examples: LabelMaps
    mistakes: LabelMaps


def _label_maps(model: SITE | BlackBox, data: Dataset, result: Result, entries: Entries) -> LabelMaps:
    images = _pictures(data, entries)
    moved = _poses(result, entries)(images) if entries else images
    if not isinstance(model, SITE) or not entries:
        return LabelMaps(images, None, moved, None)
    labels = torch.tensor([entry["label"] for entry in entries])
    maps, moved_maps = (model.explain(each).heatmaps(classes=labels).detach() for each in (images, moved))
    return LabelMaps(images, maps, moved, moved_maps)


def illustrate(model: SITE | BlackBox, data: Dataset, result: Result) -> Illustrations | LabelIllustrations:
    """Explain what the report of `result` shows; `data` are the pictures that were examined."""
    if fingerprint(data) != result.config["fingerprint"]:
        raise DataError(
            f"the result was found on {result.config['data']}, which is not {data.title} as passed: "
            f"pass the data that was examined, whole and in the same order"
        )
    examples, mistakes = result.values["examples"], result.values["mistakes"]
    if "labels" in result.values:
        both = (examples[:MOST_EXAMPLES], mistakes)
        return LabelIllustrations(*(_label_maps(model, data, result, entries) for entries in both))
    return Illustrations(
        samples=_samples(data),
        moving=_moving(model, data, result, examples[:MOST_EXAMPLES]),
        turning=_turning(model, data, result, examples[:1]),
        classes=model.explain(_pictures(data, examples[:N_EXPLAINED])) if isinstance(model, SITE) else None,
        mistakes={
            pose: _mistakes(model, data, result, pose, entries)
            for pose, entries in mistakes.items()
            if entries
        },
    )


def _samples(data: Dataset) -> tuple[Images, ...]:
    first = [(data.labels == label).nonzero()[:N_SAMPLES, 0] for label in range(len(data.classes))]
    return tuple(to_float(data.images[rows]) for rows in first[:MOST_EXAMPLES])


def _moving(model: SITE | BlackBox, data: Dataset, result: Result, entries: Entries) -> MovedExamples:
    images, labels, transform = _pictures(data, entries), _said(entries), _poses(result, entries)
    return MovedExamples(images, transform(images), _carried(model, images, labels, transform))


def turning_angles(reach: float) -> Float[Tensor, " angles"]:
    """Angles from one end of the range to the other; of a full turn each place on the circle once."""
    if reach < 180:
        return torch.linspace(-reach, reach, N_ANGLES, dtype=torch.float64)
    return (torch.arange(N_ANGLES, dtype=torch.float64) - N_ANGLES // 2) * (360 / N_ANGLES)


def _turning(model: SITE | BlackBox, data: Dataset, result: Result, entries: Entries) -> TurnedExample:
    reach = TransformFamily.from_mapping(result.config["family"]).max_rotation or 90.0
    angles = turning_angles(reach)
    turns = AffineTransform.rotation(angles)
    images, labels = _pictures(data, entries).repeat(N_ANGLES, 1, 1, 1), _said(entries).repeat(N_ANGLES)
    return TurnedExample(angles, turns(images), _carried(model, images, labels, turns))


def _mistakes(model: SITE | BlackBox, data: Dataset, result: Result, pose: str, entries: Entries) -> Mistakes:
    images, said = _pictures(data, entries), _said(entries)
    if pose == "transformed":
        images = _poses(result, entries)(images)
    if not isinstance(model, SITE):
        return Mistakes(images, None)
    explanation, labels = model.explain(images), torch.tensor([entry["label"] for entry in entries])
    true, wrong = explanation.heatmaps(classes=labels), explanation.heatmaps(classes=said)
    return Mistakes(images, MistakeMaps(true, wrong, explanation.contrast(labels, said)))


def _carried(
    model: SITE | BlackBox, images: Images, labels: Labels, transform: Transform
) -> dict[str, Carried]:
    """The maps of the model's own explanation, where it has one, and of those of BESIDE that apply to it."""
    found = {}
    for name in ("self_explanation", *BESIDE):
        if applies(name, model):
            with suppress(NotApplicableError):
                method = METHODS[name](model, **options_of(name, model))
                found[name] = carry_and_renew(method, images, labels, transform)
    return found


def _pictures(data: Dataset, entries: Entries) -> Images:
    """The pictures that entries of a result name, in [0, 1]."""
    return to_float(data.images[torch.tensor([entry["row"] for entry in entries], dtype=torch.long)])


def _said(entries: Entries) -> Labels:
    """What the model said."""
    return torch.tensor([entry["predicted"] for entry in entries], dtype=torch.long)


def _poses(result: Result, entries: Entries) -> Transform:
    """The first pose of each picture, as it was measured."""
    family = TransformFamily.from_mapping(result.config["family"])
    positions = torch.tensor([entry["position"] for entry in entries], dtype=torch.long)
    return Poses(family, result.config.get("n_transforms", 1), result.seed).of(positions, 0)
