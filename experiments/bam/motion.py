"""Objects that move over scenes: do maps follow what a model was trained to see? (Ours, on BAM's parts.)

The object alone is turned and moved over the same scene, or the scene alone is posed behind the same object.
The map of the model that names objects must go with the object, and that of the model that names scenes must
stay. A map that is drawn into the frame stays when the object goes, and goes when only the frame does.

Claim:    none of the paper's. What is right is scored beside its rivals, "stays" and "follows the frame", for
          SITE's own maps, all post-hoc methods on both kinds of model, and six map-makers that know nothing.
Command:  torchsite reproduce bam_motion       (on the models of `reproduce bam`, trained if not there)
Cost:     `MEASURES` of the test pictures; on the models from ImageNet about 20 minutes of one core. Two lanes
          can share the work, each with `measure(folder, kinds=("site",))` or ("black_box",); the command then
          gathers their steps. With --quick, a dozen painted shapes, in a minute.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from experiments.bam.data import painted_halves, real_half
from experiments.bam.dataset import BamDataset
from experiments.bam.models import LABELLINGS, Models, models_beside
from experiments.bam.pairs import Pairs, options_of
from experiments.cache import save_result
from experiments.models import KINDS
from experiments.registry import Arrays
from experiments.section import Pictures, Row, source
from experiments.study import IGNORANT, Amount, explainers, row_with
from experiments.tables import Columns, Scores, drawn, notes_below, scores_of, table_of
from torchsite.configs import to_mapping
from torchsite.evaluation.comparison import Cell
from torchsite.report.format import look_up
from torchsite.results import Result

MOTION = "object_motion"
MEASURES: Mapping[str, Amount] = {
    MOTION: Amount(250, slow=10),
    "energy_pointing": Amount(250, slow=10),
    "one_map_share": Amount(250, slow=0),
    "patch_deletion": Amount(120, slow=10),
    "frame_control": Amount(60, slow=0),
}
QUICK_ROWS = ("self_explanation", "gradient", "grad_cam", "random", *IGNORANT)

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
OTHERS: Mapping[str, Columns] = {
    by: {
        "energy on it": (f"{by} energy_pointing", ("transformed", "share")),
        "its area": (f"{by} energy_pointing", ("transformed", "area")),
        "a central blob": (f"{by} energy_pointing", ("transformed", "centre")),
        "patch deletion": (f"{by} patch_deletion", ("correlation",)),
        "its floor": (f"{by} patch_deletion", ("floor",)),
        "consistency, corners black": (f"{by} frame_control", ("black", "calibrated")),
        "corners filled": (f"{by} frame_control", ("filled", "calibrated")),
        "evidence, grey / real": (f"{by} frame_control", ("evidence", "ratio")),
        "one-map share": (f"{by} one_map_share", ("share",)),
    }
    for by in LABELLINGS
}
SHOWN = ("object map follows", "object map holds", "scene map stays")
# What SITE's own maps are said to do: of which map, what is right and its score, its rival and that score.
SAID = (
    ("When the object goes, its map", "follows", "raw", "stays", "rival: stays, raw"),
    ("when the scene goes, it", "holds", "holds, raw", "follows the frame", "rival: follows the frame, raw"),
    ("the scene model's map", "stays", "stays, raw", "follows", "rival: follows the object, raw"),
)

WORDS = """The parts of a picture move one at a time. **The object goes**: it is turned and moved over the
same scene, and the map of the model that names objects should go with it (*follows*). Its rival is a map that
*stays* where it was, as one does that is drawn into the frame and not onto the thing. **The scene goes**: it
is turned and shifted behind the same object, with black corners, and the map should hold still (*holds*). Its
rival is a map that *follows the frame*: it goes where the corners say. And when the object goes, the map of
the model that names scenes should stay, and not *follow the object*. What is right is calibrated: 0 is what
the map of another picture gets under the same motion, 1 is perfect. Rivals are raw, beside the raw score of
what is right: the larger of the two says what the map does. Counted are pictures that the model names
correctly before and after.
The last rows of each kind are map-makers that know nothing of any model: a score that they reach is no merit.
"""
OTHER_WORDS = {
    "object": "Energy is the share of the positive evidence on the object, in random poses.\n",
    "scene": "Energy is the share of the positive evidence on all but the object, in random poses.\n",
}


def run(
    folder: Path, *, methods: Sequence[str] | None = None, quick: bool = False, progress: bool = False
) -> Result:
    """Measure every explainer on both kinds of models; finished steps are taken from `folder`."""
    started = time.monotonic()
    models, test = models_and_pictures(folder, quick, progress)
    found = steps(models, test, folder, methods=methods, quick=quick)
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


def measure(
    folder: Path, *, kinds: Sequence[str] = KINDS, methods: Sequence[str] | None = None, quick: bool = False
) -> int:
    """The steps of some kinds of models and some methods, for a lane of its own; how many there are."""
    models, test = models_and_pictures(folder, quick)
    return sum(1 for _ in steps(models, test, folder, kinds=kinds, methods=methods, quick=quick))


def steps(
    models: Mapping[str, Models],
    test: BamDataset,
    folder: Path,
    *,
    kinds: Sequence[str] = KINDS,
    methods: Sequence[str] | None = None,
    quick: bool = False,
) -> Iterator[tuple[str, str, int, Cell]]:
    """Every measure of every explainer: the kind of model, the measure and by what, pictures, the cell."""
    methods = QUICK_ROWS if quick and methods is None else methods
    for kind in kinds:
        pairs = Pairs(kind, models[kind], test, folder / "steps")
        for explaining in explainers(models[kind].objects, methods, options_of):
            for metric, n, cell in pairs.cells(explaining, MEASURES, quick):
                yield kind, metric, n, cell


def models_and_pictures(
    folder: Path, quick: bool, progress: bool = False
) -> tuple[dict[str, Models], BamDataset]:
    """The models of the experiment `bam` beside, trained if they are not there, and its test pictures."""
    models = models_beside(folder, quick=quick, progress=progress)
    size = models["site"].objects.config.image_shape[-1]
    return models, painted_halves(size).test if quick else real_half("test", size, progress=progress)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """What is right, calibrated, by explainer, on both kinds of model."""
    return {result.name: drawn(scores_of(result.values["table"], MOTIONS), SHOWN)}


def section(result: Result, pictures: Pictures) -> str:
    """The motions and their rivals, then the other measures on the models of objects and of scenes."""
    table: list[Row] = result.values["table"]
    scores = scores_of(table, MOTIONS)
    parts = [
        f"### Objects that move over scenes\n\n{source(result)}\n\n{WORDS}",
        own_words(scores) + table_of(scores, MOTIONS),
    ]
    for by, columns in OTHERS.items():
        parts += [f"#### Other measures, models of {by}s\n", OTHER_WORDS[by]]
        parts.append(table_of(scores_of(table, columns), columns))
    chart = pictures.chart(result.name, "Maps that go with what they should go with")
    return "\n".join([*parts, notes_below(table), chart])


def own_words(scores: Scores) -> str:
    """What SITE's own maps do, in a sentence."""
    own, said = scores.get(("site", "self_explanation"), {}), []
    for who, right, its_score, wrong, rival in SAID:
        a, b = (look_up(own, name, "value") for name in (its_score, rival))
        if a is None or b is None:
            return ""
        said.append(f"{who} {right if a > b else wrong} ({right} {a:.3f}, {wrong} {b:.3f})")
    return f"SITE's own maps: {'; '.join(said)}.\n\n"
