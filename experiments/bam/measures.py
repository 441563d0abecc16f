"""BAM's measures of one method on a model of objects and a model of scenes, in one pass over the pictures.

MCS, IDR, IIR and the pointing game ask for the same maps; each map is made once. Moved, all pictures that
belong together (with the object, without it, with a patch in its place) move by the same transform, and the
region with them.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from experiments.bam.dataset import BamDataset
from experiments.bam.metric import BAM, insignificant_patch
from experiments.bam.models import Models
from torchsite.attribution import METHODS
from torchsite.attribution.contract import LayerAttribution
from torchsite.data import to_float
from torchsite.errors import NotApplicableError
from torchsite.evaluation.cached import Cached
from torchsite.evaluation.methods import options_of as usual_options
from torchsite.metrics import Explainer, PointingGame, Poses, as_explainer, plain
from torchsite.model import SITE, BlackBox
from torchsite.randomness import make_rng
from torchsite.shapes import Images

POSES = ("untransformed", "transformed")
TOLERANCES = (0, 3)
BATCH = 25


def patched_scenes(model: SITE | BlackBox, bam: BamDataset, n_steps: int) -> Images:
    """The scenes of these pictures with a patch in the object's place that does not change the answer."""
    parts = []
    for start in range(0, len(bam), BATCH):
        part = bam[start : start + BATCH]
        rng = make_rng(0, "patch", start)
        parts.append(
            insignificant_patch(model, to_float(part.scenes_only), part.regions, rng=rng, n_steps=n_steps)
        )
    return torch.cat(parts)


def measure_method(
    method: str, models: Models, bam: BamDataset, patched: Images | None, *, named: bool = True, seed: int = 0
) -> dict[str, Any]:
    """All of BAM's scores for one method; `{"reason": …}` if it does not apply to these models.

    Where the object model knows the objects, their true class is explained (`named`); else the class it says.
    """
    started = time.monotonic()
    try:
        looks = {
            "objects": _explainer(method, models.objects),
            "scenes": _explainer(method, models.scenes),
        }
        measures = _measures(looks, models, seed)
        for start in range(0, len(bam), BATCH):
            rows = slice(start, min(start + BATCH, len(bam)))
            _update(measures, looks, bam[rows], None if patched is None else patched[rows], start, named)
    except NotApplicableError as error:
        return {"reason": str(error)}
    found = {name: plain(measure.result()) for name, measure in measures.items()}
    values: dict[str, Any] = {pose: found[f"bam {pose}"] for pose in POSES}
    for what in ("objects", "scenes"):
        values[f"pointing {what}"] = {
            pose: {tau: _without_classes(score) for tau, score in found[f"pointing {what}"][pose].items()}
            for pose in POSES
        }
    return values | {"n_images": len(bam), "seconds": time.monotonic() - started}


def options_of(method: str, model: SITE | BlackBox) -> dict[str, Any]:
    """The usual options; methods that read a layer read the features, which both kinds of model have.

    Left to itself a method would read the black box at the end of its encoder, where few cells are left.
    """
    options = usual_options(method, model)
    reads_layer = isinstance(METHODS[method], type) and issubclass(METHODS[method], LayerAttribution)
    return options | {"layer": "bound_features"} if reads_layer else options


def _explainer(method: str, model: SITE | BlackBox) -> Explainer:
    explainer = as_explainer(METHODS[method](model, **options_of(method, model)), model)
    return replace(explainer, explain=Cached(explainer.explain))


def _measures(looks: Mapping[str, Explainer], models: Models, seed: int) -> dict[str, Any]:
    poses = Poses(models.objects.config.family, 1, seed)
    measures: dict[str, Any] = {
        f"bam {pose}": BAM(looks["objects"], looks["scenes"], poses=poses) for pose in POSES
    }
    for what, model in (("objects", models.objects), ("scenes", models.scenes)):
        measures[f"pointing {what}"] = PointingGame(
            looks[what], poses=poses, n_classes=model.config.n_classes, tolerances=TOLERANCES
        )
    return measures


def _update(
    measures: Mapping[str, Any],
    looks: Mapping[str, Explainer],
    bam: BamDataset,
    patched: Images | None,
    start: int,
    named: bool,
) -> None:
    images, scenes = to_float(bam.images), to_float(bam.scenes_only)
    indices = torch.arange(start, start + len(bam))
    transform = measures["bam transformed"].poses.of(indices, 0)
    region = bam.regions.float()
    moved_region = transform(region) > 0.5
    moved = {
        "untransformed": (images, bam.regions, scenes, patched),
        "transformed": (
            transform(images),
            moved_region,
            transform(scenes),
            None if patched is None else transform(patched),
        ),
    }
    objects = bam.object_labels if named else looks["objects"].predict(images)
    for pose, (pictures, regions, alone, perturbed) in moved.items():
        said = objects if named else looks["objects"].predict(pictures)
        measures[f"bam {pose}"].update(
            pictures, said, bam.scene_labels, regions, alone, perturbed, indices=indices
        )
    measures["pointing objects"].update(images, objects, indices=indices, regions=region)
    measures["pointing scenes"].update(images, bam.scene_labels, indices=indices, regions=1 - region)
    for look in looks.values():
        assert isinstance(look.explain, Cached)
        look.explain.forget()


def _without_classes(score: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in score.items() if name != "per_class"}
