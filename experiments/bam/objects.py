"""One model of photographs, measured by itself: SITE that names the objects of BAM's pictures.

Claim:    maps that are asked to be true point at the object, follow it whatever the corners show, and say
          nothing of grey pictures. These are the weights that come with the package as `bam_objects`.
Command:  torchsite reproduce bam_objects   (starts from ImageNet: needs torchsite[pretrained])
Cost:     a training of 16 minutes of one core (taken from `reproduce bam` beside, if it is there), a few
          more to measure; seconds with --quick, on painted shapes.
"""

from collections.abc import Mapping

import torch

from experiments.bam.models import RECIPE, halves_of, model_of
from experiments.measuring import Asked, Explaining, Measuring
from experiments.models import training_seconds
from experiments.recipes import load_recipe
from experiments.section import Pictures
from experiments.study import Found, Run, Study
from experiments.tables import Place
from torchsite.attribution import METHODS
from torchsite.configs import to_mapping
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import SITE, load
from torchsite.report.format import estimate, look_up, markdown_table
from torchsite.results import Result

N_PROBED, N_MAPS, N_QUICK = 200, 300, 12
OF_MAPS = ("pointing_game", "energy_pointing", "one_map_share")
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


def find(run: Run) -> Found:
    """Train the model of objects (or take it), store it as it ships, measure what was stored."""
    beside, halves = (
        run.folder.with_name("bam-quick" if run.quick else "bam"),
        halves_of(run.quick, run.progress),
    )
    trained = model_of("site", "object", beside, halves, quick=run.quick, progress=run.progress)
    stored = load(trained.save_pretrained(run.folder / "model", dtype=torch.float16))
    assert isinstance(stored, SITE)
    n_maps, n_probed = (N_QUICK, N_QUICK) if run.quick else (N_MAPS, N_PROBED)
    test, regions = halves.test.labelled("object"), halves.test.regions.float()
    measured = evaluate(stored, test, n_probed=n_probed)
    measuring = Measuring("site", stored, test, run.steps, regions)
    asked = dict.fromkeys(OF_MAPS, Asked(n_maps))
    maps = measuring.rows(Explaining("self_explanation", METHODS["self_explanation"]), asked)
    values = {
        "site": {**measured.values, **{row["metric"]: row["values"] for row in maps}},
        "training": {"site": training_seconds(beside / "site-object")},
    }
    config = {
        "terms": [to_mapping(term) for term in load_recipe(RECIPE).training.terms],
        "site": measured.config,
        "weights": {"site": weights_of(stored)},
        "n_maps": n_maps,
    }
    return Found(values, config=config)


def text(result: Result, pictures: Pictures) -> str:
    """The scores of the model that ships, each beside what knows nothing."""
    how, values = result.config["site"], result.values["site"]
    rows = []
    for title, (path, null) in ROWS.items():
        known = look_up(values, *null) if isinstance(null, tuple) and null else null
        known = 1 / len(how["model"]["classes"]) if title.startswith("accuracy") else known
        rows.append([title, estimate(look_up(values, *path)), "" if known == () else estimate(known)])
    words = WORDS.format(n_images=how["n_images"], n_probed=how["n_probed"], n_maps=result.config["n_maps"])
    return words + markdown_table(["", "value and 95 % interval", "knows nothing"], rows)


STUDY = Study(
    "accuracy_bam_objects",
    "### The model of objects that ships",
    find=find,
    text=text,
    command="bam_objects",
)
