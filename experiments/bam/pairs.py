"""Measures on a model of objects and a model of scenes: one file for each explainer and measure, one driver.

`bam` (MCS, IDR, IIR as they are and in poses) and `object_motion` look at both models together; every other
measure looks at one of the two, by object and by scene. The maps of an explainer are made once for all of
them. Moved, all pictures that belong together (with the object, without it, with a patch in its place) move
by the same transform, and the region with them.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from experiments.measuring import Explaining, Measures, Measuring, explainers, row_of
from experiments.study import Run
from experiments.tables import Row
from torchsite.attribution import METHODS
from torchsite.attribution.contract import LayerAttribution
from torchsite.configs import to_mapping
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


def options_of(method: str, model: SITE | BlackBox) -> dict[str, Any]:
    """The usual options; methods that read a layer read the features, which both kinds of model have.

    Left to itself a method would read the black box at the end of its encoder, where few cells are left.
    """
    options = usual_options(method, model)
    reads_layer = isinstance(METHODS[method], type) and issubclass(METHODS[method], LayerAttribution)
    return options | {"layer": "bound_features"} if reads_layer else options


@dataclass(frozen=True)
class Part:
    """Pictures of a study, what is measured on them, and whether the models know their objects."""

    name: str
    bam: BamDataset
    measures: Measures
    named: bool = True


@dataclass(frozen=True, eq=False)
class OnParts:
    """Both kinds of models, each by object and by scene; rows of a part with a name say which it is."""

    models: Mapping[str, Models]
    parts: Sequence[Part]
    kinds: Sequence[str]

    def rows(self, measures: Measures, run: Run) -> Iterator[Row]:
        """Model by model, explainer by explainer, part by part."""
        for kind in self.kinds:
            both = self.models[kind]
            pairs = [
                Pairs("-".join(filter(None, (kind, p.name))), both, p.bam, run.steps, p.named)
                for p in self.parts
            ]
            for explaining in explainers(both.objects, run.methods, options_of):
                for part, measured in zip(self.parts, pairs, strict=True):
                    for row in measured.rows(explaining, part.measures, run.quick):
                        yield {"model": kind, **row} | ({"part": part.name} if part.name else {})

    def description(self) -> Mapping[str, Any]:
        """The weights, the poses, how many pictures there are."""
        return {
            "weights": {kind: models.weights for kind, models in self.models.items()},
            "family": to_mapping(self.models["site"].objects.config.family),
            **{f"n_{part.name or 'test'}": len(part.bam) for part in self.parts},
        }


@dataclass(frozen=True, eq=False)
class Pairs:
    """Both models of one kind, pictures with their parts, and the folder of the steps.

    `title` begins the names of the files. Where the object model knows the objects, their true class is
    explained (`named`); else the class it says.
    """

    title: str
    models: Models
    bam: BamDataset
    folder: Path
    named: bool = True
    family: TransformFamily | None = None  # of the poses; else what the models have learnt

    def rows(self, explaining: Explaining, measures: Measures, quick: bool = False) -> Iterator[Row]:
        """What each measure found, called by what it looked at; finished files are taken as they are."""
        maps = {by: explaining.maps(self.models.by(by)) for by in LABELLINGS}
        for metric in measures:
            n = min(measures[metric].of(explaining, quick), len(self.bam))
            if metric in PAIRED and n:
                yield row_of(self._step(metric, explaining, maps, n), n)
        single = {metric: amount for metric, amount in measures.items() if metric not in PAIRED}
        for by, measuring in self._by.items():
            for row in measuring.rows(explaining, single, quick, maps[by]):
                yield row | {"metric": f"{by} {row['metric']}"}

    @cached_property
    def _by(self) -> dict[str, Measuring]:
        """The pictures by object and by scene; the one looks for the object, the other for all but it."""
        found, regions = {}, self.bam.regions.float()
        for by in LABELLINGS:
            model, data, title = self.models.by(by), self.bam.labelled(by), f"{self.title}-{by}"
            if by == "object" and not self.named:
                with torch.no_grad():
                    said = [model.eval()(images).argmax(1) for images, _ in batches(data, BATCH)]
                data = replace(data, labels=torch.cat(said), classes=tuple(model.classes))
            wanted = regions if by == "object" else 1 - regions
            found[by] = Measuring(title, model, data, self.folder, wanted, batch_size=BATCH)
        return found

    def _step(self, metric: str, explaining: Explaining, maps: Mapping[str, Cached], n: int) -> Cell:
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
                part, rng = bam[start : start + BATCH], make_rng(0, "patch", start)
                bare, scenes = to_float(part.scenes_only), self.models.scenes
                parts.append(insignificant_patch(scenes, bare, part.regions, rng=rng, n_steps=PATCH_STEPS))
            save_arrays(path, {"patched": torch.cat(parts)})
        return load_arrays(path)["patched"][:n]


Looks = Mapping[str, Explainer]


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
        seen = [to_float(part.images), to_float(part.scenes_only), all_patched[rows]]
        moved = transform(part.regions.float()) > 0.5
        shown = {"untransformed": (part.regions, *seen), "transformed": (moved, *map(transform, seen))}
        for pose, (regions, pictures, alone, patched) in shown.items():
            said = part.object_labels if pairs.named else looks["object"].predict(pictures)
            measures[pose].update(pictures, said, part.scene_labels, regions, alone, patched, indices=rows)
    return {pose: plain(measure.result()) for pose, measure in measures.items()}


PAIRED: Mapping[str, Callable[[Pairs, Looks, BamDataset], dict[str, Any]]] = {
    "bam": _bam,
    "object_motion": _motion,
}
