"""The four models of the BAM experiments: SITE and the black box, each by object and by scene."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.bam.data import BamHalves, painted_halves, real_halves
from experiments.models import KINDS
from experiments.recipes import is_finished, load_finished, load_recipe, train_or_load
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import SITE, BlackBox

RECIPE = "bam"
LABELLINGS = ("object", "scene")
QUICK: Mapping[str, Any] = {
    "size": 32,
    "model.feature_extractor": "pyramid",
    "model.extractor_options": {"widths": [8, 16, 16, 32], "common": 16},
    "model.generator": "spatial",
    "model.generator_options": {"widths": [8, 16, 16], "trunk": [16, 8, 8]},
    "learning_rate": 5e-3,
    "batch_size": 16,
    "epochs": 4,
    "validate_every": 4,
}


@dataclass(frozen=True, eq=False)
class Models:
    """One kind of model, trained twice on the same pictures: to name the object, and to name the scene."""

    objects: SITE | BlackBox
    scenes: SITE | BlackBox

    @property
    def weights(self) -> str:
        """The fingerprint of both."""
        return weights_of(self.objects, self.scenes)

    def by(self, labelling: str) -> SITE | BlackBox:
        """The model that names the object, or the one that names the scene."""
        return self.objects if labelling == "object" else self.scenes


def halves_of(quick: bool, progress: bool = False) -> BamHalves:
    """The pictures of the experiments, in the size of the recipe; painted ones for a slice."""
    size = int((QUICK["size"] if quick else load_recipe(RECIPE).size) or 96)
    return painted_halves(size) if quick else real_halves(size, progress=progress)


def models_beside(
    folder: Path, halves: BamHalves | None = None, *, quick: bool = False, progress: bool = False
) -> dict[str, Models]:
    """The models in the folder of the experiment `bam` beside this one, trained if they are missing.

    The pictures are composed only if one has to be trained.
    """
    place = folder.with_name("bam-quick" if quick else "bam")
    runs = [place / f"{kind}-{by}" for kind in KINDS for by in LABELLINGS]
    if not all(is_finished(run) for run in runs):
        halves = halves or halves_of(quick, progress)
    return {
        kind: Models(
            *(model_of(kind, by, place, halves, quick=quick, progress=progress) for by in LABELLINGS)
        )
        for kind in KINDS
    }


def model_of(
    kind: str, by: str, place: Path, halves: BamHalves | None, *, quick: bool = False, progress: bool = False
) -> SITE | BlackBox:
    """One model, by object or by scene, taken from its place in the folder of the experiment or trained."""
    run = place / f"{kind}-{by}"
    if is_finished(run):
        return load_finished(run)
    halves = halves or halves_of(quick, progress)
    changes = (dict(QUICK) if quick else {}) | {"model.kind": kind}
    data = (halves.train.labelled(by), halves.test.labelled(by))
    return train_or_load(RECIPE, run, changes, data=data, progress=progress)
