"""Objects that move over scenes: do maps follow what a model was trained to see? (Ours, on BAM's parts.)

The object alone is turned and moved over the same scene, or the scene alone is posed behind the same object.
The map of the model that names objects must go with the object, and that of the model that names scenes must
stay. A map that is drawn into the frame stays when the object goes, and goes when only the frame does.

Claim:    none of the paper's. What is right is scored beside its rivals, "stays" and "follows the frame", for
          SITE's own maps, all post-hoc methods on both kinds of model, and six map-makers that know nothing.
Command:  torchsite reproduce bam_motion       (on the models of `reproduce bam`, trained if not there)
Cost:     `motion_steps.N_FAST` of the test pictures, slow methods `N_SLOW`; on the models from ImageNet
          about 20 minutes of one core. Two lanes can share the work, each with `motion_steps.measure(folder,
          kinds=("site",))` or ("black_box",); the command then gathers their steps. For lanes and `run` alike
          `Counts(fast=200, slow=8)` makes it smaller. With --quick, a dozen painted shapes, in a minute.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from experiments.bam.models import LABELLINGS
from experiments.bam.motion_steps import MOTION, Counts, models_and_pictures, steps
from experiments.cache import save_result
from experiments.models import KINDS
from experiments.registry import Arrays
from experiments.section import Pictures, source
from experiments.study import Row, row_with
from experiments.tables import (
    Columns,
    Scores,
    drawn,
    notes_below,
    scores_of,
    table_of,
)
from experiments.truth_costs import costs_of
from torchsite.configs import to_mapping
from torchsite.report.format import look_up
from torchsite.results import Result

MOTIONS: Columns = {
    "object map follows": (MOTION, ("object_follows", "calibrated")),
    "raw": (MOTION, ("object_follows", "raw")),
    "rival: stays, raw": (MOTION, ("object_stays", "raw")),
    "object map holds": (MOTION, ("object_holds", "calibrated")),
    "holds, raw": (MOTION, ("object_holds", "raw")),
    "rival: follows the frame, raw": (MOTION, ("frame_follows", "raw")),
    "scene map stays": (MOTION, ("scene_stays", "calibrated")),
    "stays, raw": (MOTION, ("scene_stays", "raw")),
    "rival: follows the object, raw": (MOTION, ("scene_follows", "raw")),
}


def _others(by: str) -> Columns:
    energy = ("transformed",)
    return {
        "energy on it": (f"{by} energy_pointing", (*energy, "share")),
        "its area": (f"{by} energy_pointing", (*energy, "area")),
        "a central blob": (f"{by} energy_pointing", (*energy, "centre")),
        "patch deletion": (f"{by} patch_deletion", ("correlation",)),
        "its floor": (f"{by} patch_deletion", ("floor",)),
        "consistency, corners black": (f"{by} frame_control", ("black", "calibrated")),
        "corners filled": (f"{by} frame_control", ("filled", "calibrated")),
        "evidence, grey / real": (f"{by} frame_control", ("evidence", "ratio")),
        "one-map share": (f"{by} one_map_share", ("share",)),
    }


OTHERS = {by: _others(by) for by in LABELLINGS}
SHOWN = ("object map follows", "object map holds", "scene map stays")

WORDS = """The parts of a picture move one at a time. **The object goes**: it is turned and moved over the
same scene, and the map of the model that names objects should go with it (*follows*). Its rival is a map that
*stays* where it was, as one does that is drawn into the frame and not onto the thing. **The scene goes**: it
is turned and shifted behind the same object, with black corners, and the map should hold still (*holds*). Its
rival is a map that *follows the frame*: it goes where the corners say. And when the object goes, the map of
the model that names scenes should stay, and not *follow the object*. What is right is calibrated: 0 is what
the map of another picture gets under the same motion, 1 is perfect. Rivals are raw, beside the raw score of
what is right: the larger of the two says what the map does. Counted are pictures that the model names
correctly before and after.
"""
IGNORANT_WORDS = """The last rows of each kind are map-makers that know nothing of any model: a score that
they reach is no merit.
"""
OTHER_WORDS = {
    "object": "Energy is the share of the positive evidence on the object, in random poses.\n",
    "scene": "Energy is the share of the positive evidence on all but the object, in random poses.\n",
}


def run(
    folder: Path,
    *,
    methods: Sequence[str] | None = None,
    counts: Counts | None = None,
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Measure every explainer on both kinds of models; finished steps are taken from `folder`."""
    started = time.monotonic()
    models, test = models_and_pictures(folder, quick=quick, progress=progress)
    found = steps(models, test, folder, methods=methods, counts=counts, quick=quick)
    table = [row_with(kind, n, cell, metric) for kind, metric, n, cell in found]
    config = {
        "n_test": len(test),
        "weights": {kind: models[kind].weights for kind in KINDS},
        "family": to_mapping(models["site"].objects.config.family),
        "quick": quick,
    }
    spent = sum(row.get("seconds", 0.0) for row in table)
    result = Result("bam_motion", {"table": table}, config, 0, max(spent, time.monotonic() - started))
    return save_result(result, folder)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """What is right, calibrated, by explainer, on both kinds of model."""
    return {result.name: drawn(scores_of(result.values["table"], MOTIONS), SHOWN)}


def section(result: Result, pictures: Pictures) -> str:
    """The motions and their rivals, then the other measures on the models of objects and of scenes."""
    table: list[Row] = result.values["table"]
    scores = scores_of(table, MOTIONS)
    parts = [
        "### Objects that move over scenes\n",
        f"{source(result)}\n",
        WORDS + IGNORANT_WORDS,
        _own_words(scores) + table_of(scores, MOTIONS),
    ]
    for by, columns in OTHERS.items():
        parts += [f"#### Other measures, models of {by}s\n", OTHER_WORDS[by]]
        parts.append(table_of(scores_of(table, columns), columns))
    parts += [
        notes_below(table),
        costs_of(table, 1),
        pictures.chart(result.name, "Maps that go with what they should go with"),
    ]
    return "\n".join(parts)


def _own_words(scores: Scores) -> str:
    """What SITE's own maps do, in a sentence."""
    own = scores.get(("site", "self_explanation"), {})
    pairs = (
        ("When the object goes, its map", "follows", "raw", "stays", "rival: stays, raw"),
        (
            "when the scene goes, it",
            "holds",
            "holds, raw",
            "follows the frame",
            "rival: follows the frame, raw",
        ),
        ("the scene model's map", "stays", "stays, raw", "follows", "rival: follows the object, raw"),
    )
    said = []
    for who, right, its_score, wrong, rival in pairs:
        a, b = (look_up(own, name, "value") for name in (its_score, rival))
        if a is None or b is None:
            return ""
        said.append(f"{who} {right if a > b else wrong} ({right} {a:.3f}, {wrong} {b:.3f})")
    return f"SITE's own maps: {'; '.join(said)}.\n\n"
