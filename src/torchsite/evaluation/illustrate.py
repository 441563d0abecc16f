"""The pictures and maps that a report shows, as arrays: drawing them needs no model.

The result of `examine` lists the pictures: one example of each class, and the most confident
mistakes. The pose of a picture is the first of those in which it was measured.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
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

BESIDE = ("gradient", "grad_cam")  # shown beside SITE's own, or alone on a black box
MOST_EXAMPLES = 10
N_SAMPLES = 10
N_ANGLES = 7
N_EXPLAINED = 4  # pictures of which the evidence for all classes is shown


class Moved(NamedTuple):
    """Pictures, the same moved, and by method I(x), T(I x), I(T x)."""

    images: Images
    moved: Images
    maps: Mapping[str, Carried]


class MistakeMaps(NamedTuple):
    """The evidence for the true class, for the predicted one, and their difference."""

    true: Heatmaps
    said: Heatmaps
    contrast: Heatmaps


class Mistakes(NamedTuple):
    """Wrongly classified pictures as the model saw them; a black box gives no reasons."""

    images: Images
    maps: MistakeMaps | None


@dataclass(frozen=True, eq=False)
class Illustrations:
    """All pictures and maps of a report; `samples` are the first pictures of each class.

    `moving` has one picture of each class in a pose, `turning` one picture at each of `angles`.
    """

    samples: tuple[Images, ...]
    moving: Moved
    angles: Float[Tensor, " angles"]
    turning: Moved
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


def illustrate(model: SITE | BlackBox, data: Dataset, result: Result) -> Illustrations | LabelIllustrations:
    """Explain what the report of `result` shows; `data` are the pictures that were examined."""
    if fingerprint(data) != result.config["fingerprint"]:
        raise DataError(
            f"the result was found on {result.config['data']}, which is not {data.title} as passed: "
            f"pass the data that was examined, whole and in the same order"
        )
    examples, mistakes = result.values["examples"], result.values["mistakes"]
    family = TransformFamily.from_mapping(result.config["family"])
    poses = Poses(family, result.config.get("n_transforms", 1), result.seed)
    chosen = partial(_Chosen, data, poses)
    if "labels" in result.values:
        both = (examples[:MOST_EXAMPLES], mistakes)
        return LabelIllustrations(*(_label_maps(model, chosen(entries)) for entries in both))
    shown, first, few = (chosen(examples[:n]) for n in (MOST_EXAMPLES, 1, N_EXPLAINED))
    angles = turning_angles(family.max_rotation or 90.0)
    images, said = first.images.repeat(N_ANGLES, 1, 1, 1), first.column("predicted").repeat(N_ANGLES)
    return Illustrations(
        samples=_samples(data),
        moving=_moved(model, shown.images, shown.column("predicted"), shown.transform),
        angles=angles,
        turning=_moved(model, images, said, AffineTransform.rotation(angles)),
        classes=model.explain(few.images) if isinstance(model, SITE) else None,
        mistakes={
            pose: _mistakes(model, chosen(entries), posed=pose == "transformed")
            for pose, entries in mistakes.items()
            if entries
        },
    )


def turning_angles(reach: float) -> Float[Tensor, " angles"]:
    """Angles from one end of the range to the other; of a full turn each place on the circle once."""
    if reach < 180:
        return torch.linspace(-reach, reach, N_ANGLES, dtype=torch.float64)
    return (torch.arange(N_ANGLES, dtype=torch.float64) - N_ANGLES // 2) * (360 / N_ANGLES)


@dataclass(frozen=True)
class _Chosen:
    """The pictures that entries of a result name, each with its pose."""

    data: Dataset
    poses: Poses
    entries: Sequence[Mapping[str, Any]]

    def column(self, name: str) -> Labels:
        """The numbers that the entries have under a name."""
        return torch.tensor([entry[name] for entry in self.entries], dtype=torch.long)

    @property
    def images(self) -> Images:
        """The pictures as they are, in [0, 1]."""
        return to_float(self.data.images[self.column("row")])

    @property
    def transform(self) -> Transform:
        """The first pose of each picture, as it was measured."""
        return self.poses.of(self.column("position"), 0)


def _samples(data: Dataset) -> tuple[Images, ...]:
    first = [(data.labels == label).nonzero()[:N_SAMPLES, 0] for label in range(len(data.classes))]
    return tuple(to_float(data.images[rows]) for rows in first[:MOST_EXAMPLES])


def _moved(model: SITE | BlackBox, images: Images, classes: Labels, transform: Transform) -> Moved:
    """The maps of the model's own explanation, where it has one, and of those of BESIDE that apply to it."""
    found = {}
    for name in ("self_explanation", *BESIDE):
        if applies(name, model):
            with suppress(NotApplicableError):
                method = METHODS[name](model, **options_of(name, model))
                found[name] = carry_and_renew(method, images, classes, transform)
    return Moved(images, transform(images), found)


def _mistakes(model: SITE | BlackBox, chosen: _Chosen, *, posed: bool) -> Mistakes:
    images = chosen.transform(chosen.images) if posed else chosen.images
    if not isinstance(model, SITE):
        return Mistakes(images, None)
    explanation, labels, said = model.explain(images), chosen.column("label"), chosen.column("predicted")
    true, wrong = explanation.heatmaps(classes=labels), explanation.heatmaps(classes=said)
    return Mistakes(images, MistakeMaps(true, wrong, explanation.contrast(labels, said)))


def _label_maps(model: SITE | BlackBox, chosen: _Chosen) -> LabelMaps:
    images = chosen.images
    moved = chosen.transform(images) if chosen.entries else images
    if not isinstance(model, SITE) or not chosen.entries:
        return LabelMaps(images, None, moved, None)
    labels = chosen.column("label")
    maps, moved_maps = (model.explain(each).heatmaps(classes=labels).detach() for each in (images, moved))
    return LabelMaps(images, maps, moved, moved_maps)
