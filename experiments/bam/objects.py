"""One model of photographs, measured by itself: SITE that names the objects of BAM's pictures.

Claim:    maps that are asked to be true point at the object, follow it whatever the corners show, and say
          nothing of grey pictures. These are the weights that come with the package as `bam_objects`.
Command:  torchsite reproduce bam_objects   (starts from ImageNet: needs torchsite[pretrained])
Cost:     a training of 16 minutes of one core (taken from `reproduce bam` beside, if it is there), a few
          more to measure; seconds with --quick, on painted shapes.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from experiments.bam.data import BamHalves
from experiments.bam.models import RECIPE, halves_of, model_of
from experiments.cache import save_result
from experiments.models import training_seconds
from experiments.recipes import load_recipe
from experiments.registry import Arrays, Figures
from experiments.section import Pictures, source
from torchsite.configs import to_mapping
from torchsite.evaluation.compare import compare
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import SITE, load
from torchsite.report.format import estimate, look_up, markdown_table
from torchsite.results import Result

N_PROBED = 200
N_MAPS = 300
N_QUICK = 12
# What is said of the maps: where it stands, and where what knows nothing stands.
ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...] | float]] = {
    "accuracy, upright": (("accuracy", "untransformed"), ()),
    "accuracy, turned and shifted": (("accuracy", "transformed"), ()),
    "points at the object, upright": (
        ("pointing_game", "untransformed", "tau_0", "score"),
        ("pointing_game", "untransformed", "tau_0", "anywhere"),
    ),
    "points at the object, turned and shifted": (
        ("pointing_game", "transformed", "tau_0", "score"),
        ("pointing_game", "transformed", "tau_0", "anywhere"),
    ),
    "positive evidence on the object, upright": (
        ("energy_pointing", "untransformed", "share"),
        ("energy_pointing", "untransformed", "area"),
    ),
    "hiding a patch does what the map says": (
        ("patch_deletion", "correlation"),
        ("patch_deletion", "floor"),
    ),
    "the map follows, above its floor": (("self_consistency", "calibrated"), 0.0),
    "the same, corners black (pictures that were probed)": (("frame_control", "black", "calibrated"), 0.0),
    "the same, corners filled (pictures that were probed)": (("frame_control", "filled", "calibrated"), 0.0),
    "evidence on grey pictures / real ones": (("frame_control", "evidence", "ratio"), ()),
    "share of all maps that one map explains": (("one_map_share", "share"), ()),
}


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train the model of objects (or take it), store it as it ships, measure what was stored."""
    started = time.monotonic()
    beside, halves = folder.with_name("bam-quick" if quick else "bam"), halves_of(quick, progress)
    trained = model_of("site", "object", beside, halves, quick=quick, progress=progress)
    stored = load(trained.save_pretrained(folder / "model", dtype=torch.float16))
    assert isinstance(stored, SITE)
    n_probed, n_maps = (N_QUICK, N_QUICK) if quick else (N_PROBED, N_MAPS)
    found, how = measure(stored, halves, n_probed=n_probed, n_maps=n_maps)
    values = {"site": found, "training": {"site": training_seconds(beside / "site-object")}}
    config = {
        "recipe": "bam_objects",
        "terms": [to_mapping(term) for term in load_recipe(RECIPE).training.terms],
        "site": how,
        "weights": {"site": weights_of(stored)},
        "n_maps": n_maps,
        "quick": quick,
    }
    result = Result("accuracy_bam_objects", values, config, 0, time.monotonic() - started)
    return save_result(result, folder)


def measure(
    model: SITE, halves: BamHalves, *, n_probed: int, n_maps: int
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """All scores of a model of objects on the test pictures, and how they were found."""
    measured = evaluate(model, halves.test.labelled("object"), n_probed=n_probed)
    return {**measured.values, **maps_of(model, halves, n_maps)}, measured.config


def maps_of(model: SITE, halves: BamHalves, n: int) -> dict[str, Any]:
    """Where the maps of the first `n` test pictures lie, for the object that is there; how alike they are."""
    found = compare(
        model,
        data=halves.test.labelled("object"),
        methods=["self_explanation"],
        metrics=["pointing_game", "energy_pointing", "one_map_share"],
        family=model.config.family,
        n_transforms=1,
        limit=n,
        regions=halves.test.regions.float(),
    )
    return {cell.metric: cell.values for cell in found.cells}


def figures(result: Result, arrays: Arrays) -> Figures:
    """None."""
    del result, arrays
    return {}


def section(result: Result, pictures: Pictures) -> str:
    """The scores of the model that ships, each beside what knows nothing."""
    del pictures
    config, values = result.config, result.values["site"]
    chance = 1 / len(config["site"]["model"]["classes"])
    rows = []
    for title, (path, null) in ROWS.items():
        known = "" if null == () else estimate(look_up(values, *null) if isinstance(null, tuple) else null)
        rows.append(
            [title, estimate(look_up(values, *path)), f"{chance:.2g}" if "accuracy" in title else known]
        )
    return "\n".join(
        [
            "### The model of objects that ships\n",
            f"{source(result, 'bam_objects')}\n",
            f"`bam_objects`: SITE from ImageNet, {config['site']['n_images']:,} test pictures; "
            f"patch deletion and corners on the first {config['site']['n_probed']}, pointing, evidence on "
            f"the object and the one map on the first {config['n_maps']}. One training, one seed; how it "
            "came about is told in [design/bam.md](design/bam.md).\n",
            markdown_table(["", "value and 95 % interval", "knows nothing"], rows),
        ]
    )
