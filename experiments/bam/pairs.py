"""Measures on a model of objects and a model of scenes: one file for each explainer and measure, one driver.

`bam` (MCS, IDR, IIR as they are and in poses) and `object_motion` look at both models together; every other
measure looks at one of the two, by object and by scene. The maps of an explainer are made once for all of
them. Moved, all pictures that belong together (with the object, without it, with a patch in its place) move
by the same transform, and the region with them.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from experiments.bam.dataset import BamDataset
from experiments.bam.metric import BAM, insignificant_patch
from experiments.bam.models import LABELLINGS, Models
from experiments.bam.object_motion import ObjectMotion
from experiments.cache import load_arrays, save_arrays, step
from experiments.study import Amount, Explaining, Measuring
from torchsite.attribution import METHODS
from torchsite.attribution.contract import LayerAttribution
from torchsite.data import batches, to_float
from torchsite.errors import NotApplicableError
from torchsite.evaluation.cached import Cached
from torchsite.evaluation.compare import Stopwatch
from torchsite.evaluation.comparison import Cell
from torchsite.evaluation.fingerprints import describe_options, fingerprint
from torchsite.evaluation.methods import options_of as usual_options
from torchsite.metrics import Explainer, Poses, as_explainer, plain
from torchsite.model import SITE, BlackBox
from torchsite.randomness import make_rng
from torchsite.shapes import Images
from torchsite.transforms import TransformFamily

POSES = ("untransformed", "transformed")
BATCH = 25
PATCH_STEPS = 30

Looks = Mapping[str, Explainer]


def options_of(method: str, model: SITE | BlackBox) -> dict[str, Any]:
    """The usual options; methods that read a layer read the features, which both kinds of model have.

    Left to itself a method would read the black box at the end of its encoder, where few cells are left.
    """
    options = usual_options(method, model)
    reads_layer = isinstance(METHODS[method], type) and issubclass(METHODS[method], LayerAttribution)
    return options | {"layer": "bound_features"} if reads_layer else options


@dataclass(frozen=True, eq=False)
class Pairs:
    """Both models of one kind, pictures with their parts, and the folder of the steps.

    `title` begins the names of the files. Where the object model knows the objects, their true class is
    explained (`named`); else the class it says. `options` are those of measures that look at one model.
    """

    title: str
    models: Models
    bam: BamDataset
    folder: Path
    named: bool = True
    options: Mapping[str, Mapping[str, Any]] | None = None
    family: TransformFamily | None = None  # of the poses; else what the models have learnt

    def cells(
        self, explaining: Explaining, measures: Mapping[str, Amount], quick: bool = False
    ) -> Iterator[tuple[str, int, Cell]]:
        """The measure and by what, how many pictures it saw, what it found; finished files are taken."""
        maps = {by: explaining.maps(self.models.by(by)) for by in LABELLINGS}
        single = {}
        for metric, amount in measures.items():
            n = min(amount.of(explaining, quick), len(self.bam))
            if metric not in PAIRED:
                single[metric] = amount
            elif n:
                yield metric, n, self._paired(metric, explaining, maps, n)
        for by, measuring in self._by.items():
            for n, cell in measuring.cells(explaining, single, quick, maps[by]):
                yield f"{by} {cell.metric}", n, cell

    @cached_property
    def _by(self) -> dict[str, Measuring]:
        """The pictures by object and by scene; the one looks for the object, the other for all but it."""
        found, regions = {}, self.bam.regions.float()
        for by in LABELLINGS:
            model, data = self.models.by(by), self.bam.labelled(by)
            if by == "object" and not self.named:
                with torch.no_grad():
                    said = [model.eval()(images).argmax(1) for images, _ in batches(data, BATCH)]
                data = replace(data, labels=torch.cat(said), classes=tuple(model.classes))
            wanted = regions if by == "object" else 1 - regions
            found[by] = Measuring(
                f"{self.title}-{by}",
                model,
                data,
                self.folder,
                self.options or {},
                regions=wanted,
                batch_size=BATCH,
            )
        return found

    def _paired(self, metric: str, explaining: Explaining, maps: Mapping[str, Cached], n: int) -> Cell:
        bam = self.bam[:n]
        config = {
            "weights": self.models.weights,
            "pictures": fingerprint(bam.images, bam.regions),
            "options": describe_options(explaining.options),
            "n_images": n,
        }
        find = partial(self.pair_cell, metric, explaining, maps, bam)
        path = self.folder / f"{self.title}-{explaining.name}-{metric}.json"
        return Cell(**step(path, config, lambda: asdict(find())).values)

    def pair_cell(
        self, metric: str, explaining: Explaining, maps: Mapping[str, Any], bam: BamDataset
    ) -> Cell:
        """A measure of both models together; a method that does not apply gives its reason."""
        started = time.perf_counter()
        watches = {by: Stopwatch(maps[by]) for by in LABELLINGS}
        looks = {by: as_explainer(watches[by], self.models.by(by)) for by in LABELLINGS}
        try:
            values = PAIRED[metric](self, looks, bam)
        except NotApplicableError as error:
            return Cell(explaining.name, metric, reason=str(error))
        return Cell(
            explaining.name,
            metric,
            describe_options(explaining.options),
            values,
            seconds=time.perf_counter() - started,
            explain_seconds=sum(watch.seconds for watch in watches.values()),
            n_explained=sum(watch.n for watch in watches.values()),
        )

    @property
    def poses(self) -> Poses:
        """One pose for each picture."""
        return Poses(self.family or self.models.objects.config.family, 1)

    def patched(self, n: int) -> Images:
        """The scenes of the first pictures with a patch in the object's place that changes no answer."""
        bam = self.bam[: -(-n // BATCH) * BATCH]
        key = f"{self.models.weights}-{fingerprint(bam.images)}"
        path = self.folder / f"{self.title}-patches-{key}.npz"
        if not path.exists():
            parts = []
            for start in range(0, len(bam), BATCH):
                part = bam[start : start + BATCH]
                bare, rng = to_float(part.scenes_only), make_rng(0, "patch", start)
                parts.append(
                    insignificant_patch(self.models.scenes, bare, part.regions, rng=rng, n_steps=PATCH_STEPS)
                )
            save_arrays(path, {"patched": torch.cat(parts)})
        return load_arrays(path)["patched"][:n]


def _motion(pairs: Pairs, looks: Looks, bam: BamDataset) -> dict[str, Any]:
    metric = ObjectMotion(*(looks[by] for by in LABELLINGS), poses=pairs.poses)
    for rows in torch.arange(len(bam)).split(BATCH):
        part = bam[rows]
        pictures, scenes = to_float(part.images), to_float(part.scenes_only)
        metric.update(pictures, part.object_labels, part.scene_labels, part.regions, scenes, indices=rows)
    values: dict[str, Any] = plain(metric.result())
    return values


def _bam(pairs: Pairs, looks: Looks, bam: BamDataset) -> dict[str, Any]:
    """MCS, IDR and IIR in both poses."""
    measures = {pose: BAM(*(looks[by] for by in LABELLINGS), poses=pairs.poses) for pose in POSES}
    all_patched = pairs.patched(len(bam))
    for rows in torch.arange(len(bam)).split(BATCH):
        part, transform = bam[rows], pairs.poses.of(rows, 0)
        region = part.regions.float()
        seen = [to_float(part.images), to_float(part.scenes_only), all_patched[rows]]
        shown = {
            "untransformed": (part.regions, *seen),
            "transformed": (transform(region) > 0.5, *(transform(images) for images in seen)),
        }
        for pose, (regions, pictures, alone, patched) in shown.items():
            said = part.object_labels if pairs.named else looks["object"].predict(pictures)
            measures[pose].update(pictures, said, part.scene_labels, regions, alone, patched, indices=rows)
    return {pose: plain(measure.result()) for pose, measure in measures.items()}


PAIRED: Mapping[str, Callable[[Pairs, Looks, BamDataset], dict[str, Any]]] = {
    "bam": _bam,
    "object_motion": _motion,
}
