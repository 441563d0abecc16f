"""The four models of the BAM experiment: SITE and the black box, each by object and by scene."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.bam.data import BamHalves, painted_halves, real_halves
from experiments.models import KINDS
from experiments.recipes import is_finished, load_finished, load_recipe, train_or_load
from torchsite.configs import to_mapping
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import SITE, BlackBox

RECIPE = "bam"
LABELLINGS = ("object", "scene")

# From nothing: a smaller pyramid, half the pixels, as much time.
SCRATCH: Mapping[str, Any] = {
    "size": 64,
    "model.feature_extractor": "pyramid",
    "model.extractor_options": {"widths": [24, 48, 96, 192]},
    "schedule": "one_cycle",
    "optimiser": "muon",
    "learning_rate": 3e-3,
    "epochs": 4,
}
QUICK: Mapping[str, Any] = {
    "size": 32,
    "model.feature_extractor": "pyramid",
    "model.extractor_options": {"widths": [8, 16, 16, 32], "common": 16},
    "model.generator_options": {"widths": [8, 16, 16], "trunk": [16, 8, 8]},
    "learning_rate": 5e-3,
    "batch_size": 16,
    "epochs": 4,
    "validate_every": 4,
}

# Where each experiment starts from.
STARTS: Mapping[str, Mapping[str, Any]] = {"bam": {}, "bam_scratch": SCRATCH}


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


def settings_of(name: str, quick: bool) -> dict[str, Any]:
    """What an experiment changes in the recipe."""
    return dict(STARTS[name]) | (dict(QUICK) if quick else {})


def train_all(
    folder: Path, settings: Mapping[str, Any], *, quick: bool, progress: bool
) -> tuple[BamHalves, dict[str, Models]]:
    """The pictures, and four models trained on them or taken from `folder`."""
    halves = halves_for(settings, quick=quick, progress=progress)
    return halves, {
        kind: Models(*(train_one(kind, by, halves, folder, settings, progress) for by in LABELLINGS))
        for kind in KINDS
    }


def models_in(folder: Path, *, quick: bool, progress: bool) -> dict[str, Models]:
    """The models of the experiment in `folder`; its pictures are composed only if one has to be trained."""
    folders = {kind: [place_of(folder, kind, by) for by in LABELLINGS] for kind in KINDS}
    if all(is_finished(place) for both in folders.values() for place in both):
        return {kind: Models(*map(load_finished, both)) for kind, both in folders.items()}
    return train_all(folder, settings_of("bam", quick), quick=quick, progress=progress)[1]


def train_one(
    kind: str, by: str, halves: BamHalves, folder: Path, changes: Mapping[str, Any], progress: bool
) -> SITE | BlackBox:
    """One model, by object or by scene, trained or taken from its place in the folder of the experiment."""
    return train_or_load(
        RECIPE,
        place_of(folder, kind, by),
        dict(changes) | {"model.kind": kind},
        data=(halves.train.labelled(by), halves.test.labelled(by)),
        progress=progress,
    )


def place_of(folder: Path, kind: str, by: str) -> Path:
    """Where the experiment keeps one of its models."""
    return folder / f"{kind}-{by}"


def halves_for(settings: Mapping[str, Any], *, quick: bool, progress: bool) -> BamHalves:
    """The pictures of an experiment, in the size that it works at."""
    size = int(settings.get("size") or load_recipe(RECIPE).size or 96)
    return painted_halves(size) if quick else real_halves(size, progress=progress)


def terms_of_recipe() -> list[dict[str, Any]]:
    """What the models are trained for beside the classification, as a result file keeps it."""
    return [to_mapping(term) for term in load_recipe(RECIPE).training.terms]
