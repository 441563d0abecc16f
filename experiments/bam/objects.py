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

import torch

from experiments.bam.models import RECIPE, halves_of, model_of
from experiments.cache import save_result
from experiments.models import training_seconds
from experiments.recipes import load_recipe
from experiments.section import Pictures, source
from torchsite.configs import to_mapping
from torchsite.evaluation.compare import compare
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import SITE, load
from torchsite.report.format import estimate, look_up, markdown_table
from torchsite.results import Result

N_PROBED, N_MAPS, N_QUICK = 200, 300, 12
OF_MAPS = ("pointing_game", "energy_pointing", "one_map_share")
Place = tuple[str, ...]
# What is said of the maps: where it stands, and where what knows nothing stands.
ROWS: Mapping[str, tuple[Place, Place | float]] = {
    "accuracy, upright": (("accuracy", "untransformed"), ()),
    "accuracy, turned and shifted": (("accuracy", "transformed"), ()),
    **{
        f"points at the object, {words}": (
            ("pointing_game", pose, "tau_0", "score"),
            ("pointing_game", pose, "tau_0", "anywhere"),
        )
        for pose, words in (("untransformed", "upright"), ("transformed", "turned and shifted"))
    },
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
WORDS = """`bam_objects`: SITE from ImageNet, {n_images:,} test pictures; patch deletion and corners on the \
first {n_probed}, pointing, evidence on the object and the one map on the first {n_maps}. One training, one \
seed; how it came about is told in [design/bam.md](design/bam.md).\n
"""


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train the model of objects (or take it), store it as it ships, measure what was stored."""
    started = time.monotonic()
    beside, halves = folder.with_name("bam-quick" if quick else "bam"), halves_of(quick, progress)
    trained = model_of("site", "object", beside, halves, quick=quick, progress=progress)
    stored = load(trained.save_pretrained(folder / "model", dtype=torch.float16))
    assert isinstance(stored, SITE)
    test, n_maps = halves.test.labelled("object"), N_QUICK if quick else N_MAPS
    measured = evaluate(stored, test, n_probed=N_QUICK if quick else N_PROBED)
    maps = compare(
        stored,
        data=test,
        methods=["self_explanation"],
        metrics=OF_MAPS,
        family=stored.config.family,
        n_transforms=1,
        limit=n_maps,
        regions=halves.test.regions.float(),
    )
    values = {
        "site": {**measured.values, **{cell.metric: cell.values for cell in maps.cells}},
        "training": {"site": training_seconds(beside / "site-object")},
    }
    config = {
        "recipe": "bam_objects",
        "terms": [to_mapping(term) for term in load_recipe(RECIPE).training.terms],
        "site": measured.config,
        "weights": {"site": weights_of(stored)},
        "n_maps": n_maps,
        "quick": quick,
    }
    seconds = time.monotonic() - started
    return save_result(Result("accuracy_bam_objects", values, config, 0, seconds), folder)


def section(result: Result, pictures: Pictures) -> str:
    """The scores of the model that ships, each beside what knows nothing."""
    del pictures
    how, values = result.config["site"], result.values["site"]
    rows = []
    for title, (path, null) in ROWS.items():
        known = look_up(values, *null) if isinstance(null, tuple) and null else null
        known = 1 / len(how["model"]["classes"]) if title.startswith("accuracy") else known
        rows.append([title, estimate(look_up(values, *path)), "" if known == () else estimate(known)])
    words = WORDS.format(n_images=how["n_images"], n_probed=how["n_probed"], n_maps=result.config["n_maps"])
    return (
        f"### The model of objects that ships\n\n{source(result, 'bam_objects')}\n\n{words}"
        + markdown_table(["", "value and 95 % interval", "knows nothing"], rows)
    )
