"""The steps of the experiment on objects that move: one file for each kind of model, explainer and measure.

`object_motion` looks at the model of objects and that of scenes together. The other measures look at one of
the two; energy pointing asks the one for its object, and the other for all but the object.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from experiments.bam.data import painted_halves, real_half
from experiments.bam.dataset import BamDataset
from experiments.bam.measures import BATCH, options_of
from experiments.bam.models import LABELLINGS, Models, models_in
from experiments.bam.object_motion import ObjectMotion
from experiments.cache import step
from experiments.models import KINDS
from experiments.study import (
    IGNORANT_MARK,
    Explaining,
    Measuring,
    capped,
    explainers,
)
from torchsite.data import to_float
from torchsite.errors import NotApplicableError
from torchsite.evaluation.cached import Cached
from torchsite.evaluation.compare import Stopwatch
from torchsite.evaluation.comparison import Cell
from torchsite.evaluation.fingerprints import describe_options, fingerprint, weights_of
from torchsite.metrics import CONTROL_MAPS, Poses, as_explainer, plain

MOTION = "object_motion"
# How many pictures each measure shows to a method of few passes, and to a slow one, of which fewer are asked.
N_FAST: Mapping[str, int] = {
    MOTION: 250,
    "energy_pointing": 250,
    "one_map_share": 250,
    "patch_deletion": 120,
    "frame_control": 60,
}
N_SLOW: Mapping[str, int] = {MOTION: 10, "energy_pointing": 10, "patch_deletion": 10}
N_QUICK = 12
QUICK_ROWS = (
    "self_explanation",
    "gradient",
    "grad_cam",
    "random",
    *(IGNORANT_MARK + name for name in CONTROL_MAPS),
)


@dataclass(frozen=True)
class Counts:
    """The most pictures that any measure shows to a fast and to a slow method; None is the usual number."""

    fast: int | None = None
    slow: int | None = None

    def of(self, explaining: Explaining) -> dict[str, int]:
        """How many pictures each measure shows to this explainer."""
        return capped(N_SLOW, self.slow) if explaining.slow else capped(N_FAST, self.fast)


def measure(
    folder: Path,
    *,
    kinds: Sequence[str] = KINDS,
    methods: Sequence[str] | None = None,
    counts: Counts | None = None,
    quick: bool = False,
) -> int:
    """The steps of some kinds of models and some methods, for a lane of its own; how many there are."""
    models, test = models_and_pictures(folder, quick=quick)
    found = steps(models, test, folder, kinds=kinds, methods=methods, counts=counts, quick=quick)
    return sum(1 for _ in found)


def steps(
    models: Mapping[str, Models],
    test: BamDataset,
    folder: Path,
    *,
    kinds: Sequence[str] = KINDS,
    methods: Sequence[str] | None = None,
    counts: Counts | None = None,
    quick: bool = False,
) -> Iterator[tuple[str, str, int, Cell]]:
    """Every measure of every explainer: the kind of model, the measure and by what, pictures, the cell."""
    counts = counts or (Counts(N_QUICK, N_QUICK) if quick else Counts())
    methods = QUICK_ROWS if quick and methods is None else methods
    for kind in kinds:
        yield from _of_kind(kind, models[kind], test, folder / "steps", methods, counts)


def models_and_pictures(
    folder: Path, *, quick: bool, progress: bool = False
) -> tuple[dict[str, Models], BamDataset]:
    """The models of the experiment `bam` beside, trained if they are not there, and its test pictures."""
    models = models_in(folder.with_name("bam-quick" if quick else "bam"), quick=quick, progress=progress)
    size = models["site"].objects.config.image_shape[-1]
    return models, painted_halves(size).test if quick else real_half("test", size, progress=progress)


def motion_cell(explaining: Explaining, models: Models, bam: BamDataset) -> Cell:
    """Object motion of one explainer on both models; a method that does not apply gives its reason."""
    started = time.perf_counter()
    watches = [Stopwatch(explaining.on(models.by(by))) for by in LABELLINGS]
    looks = [Cached(watch) for watch in watches]
    borrowed = [as_explainer(look, models.by(by)) for look, by in zip(looks, LABELLINGS, strict=True)]
    metric = ObjectMotion(*borrowed, poses=Poses(models.objects.config.family, 1))
    try:
        for rows in torch.arange(len(bam)).split(BATCH):
            part = bam[rows]
            pictures, scenes = to_float(part.images), to_float(part.scenes_only)
            labels = (part.object_labels, part.scene_labels)
            metric.update(pictures, *labels, part.regions, scenes, indices=rows)
            for look in looks:
                look.forget()
    except NotApplicableError as error:
        return Cell(explaining.name, MOTION, reason=str(error))
    return Cell(
        explaining.name,
        MOTION,
        describe_options(explaining.options),
        plain(metric.result()),
        seconds=time.perf_counter() - started,
        explain_seconds=sum(watch.seconds for watch in watches),
        n_explained=sum(watch.n for watch in watches),
    )


def _of_kind(
    kind: str,
    models: Models,
    test: BamDataset,
    place: Path,
    methods: Sequence[str] | None,
    counts: Counts,
) -> Iterator[tuple[str, str, int, Cell]]:
    measuring = {by: _measuring(f"{kind}-{by}", models, test, by, place) for by in LABELLINGS}
    for explaining in explainers(models.objects, methods, options_of):
        limits = counts.of(explaining)
        n = min(limits.pop(MOTION), len(test))
        yield kind, MOTION, n, _kept_motion(explaining, kind, models, test[:n], place)
        for by in LABELLINGS:
            for n, cell in measuring[by].cells(explaining, limits):
                yield kind, f"{by} {cell.metric}", n, cell


def _measuring(title: str, models: Models, test: BamDataset, by: str, place: Path) -> Measuring:
    model, regions = models.by(by), test.regions.float()
    wanted = regions if by == "object" else 1 - regions
    return Measuring(title, Cached(model), model, test.labelled(by), place, regions=wanted)


def _kept_motion(explaining: Explaining, kind: str, models: Models, bam: BamDataset, place: Path) -> Cell:
    config: dict[str, Any] = {
        "weights": weights_of(models.objects, models.scenes),
        "pictures": fingerprint(bam.images, bam.regions),
        "options": describe_options(explaining.options),
        "n_images": len(bam),
    }
    find = partial(_plain_cell, explaining, models, bam)
    return Cell(**step(place / f"{kind}-{explaining.name}-{MOTION}.json", config, find).values)


def _plain_cell(explaining: Explaining, models: Models, bam: BamDataset) -> dict[str, Any]:
    return asdict(motion_cell(explaining, models, bam))
