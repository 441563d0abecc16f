"""Objects that move over scenes: do maps follow what a model was trained to see? (Ours, on BAM's parts.)

The object alone is turned and moved over the same scene, or the scene alone is posed behind the same object.
The map of the model that names objects must go with the object, and that of the model that names scenes must
stay. A map that is drawn into the frame stays when the object goes, and goes when only the frame does.

Claim:    none of the paper's. What is right is scored beside its rivals, "stays" and "follows the frame", for
          SITE's own maps, all post-hoc methods on both kinds of model, and six map-makers that know nothing.
Command:  torchsite reproduce bam_motion       (on the models of `reproduce bam`, trained if not there)
Cost:     `MEASURES` of the test pictures; on the models from ImageNet about 20 minutes of one core. Two lanes
          can share the work, each with `STUDY.measure("bam", folder, models=("site",))` or ("black_box",);
          the command then gathers their steps. With --quick, a dozen painted shapes, in a minute.
"""

from collections.abc import Sequence

from experiments.bam.data import painted_halves, real_half
from experiments.bam.models import models_beside
from experiments.bam.pairs import OnParts, Part
from experiments.measuring import Asked
from experiments.models import KINDS
from experiments.study import Run, Study
from experiments.tables import IGNORANT, Row, Table, lines_of, notes_below
from torchsite.report.format import look_up

MOTION = "object_motion"
MEASURES = {
    MOTION: Asked(250, slow=10),
    "energy_pointing": Asked(250, slow=10),
    "one_map_share": Asked(250, slow=0),
    "patch_deletion": Asked(120, slow=10),
    "frame_control": Asked(60, slow=0),
}
MOTIONS = {
    "object map follows": (MOTION, "object_follows", "calibrated"),
    "raw": (MOTION, "object_follows", "raw"),
    "rival: stays, raw": (MOTION, "object_stays", "raw"),
    "object map holds": (MOTION, "object_holds", "calibrated"),
    "holds, raw": (MOTION, "object_holds", "raw"),
    "rival: follows the frame, raw": (MOTION, "frame_follows", "raw"),
    "scene map stays": (MOTION, "scene_stays", "calibrated"),
    "stays, raw": (MOTION, "scene_stays", "raw"),
    "rival: follows the object, raw": (MOTION, "scene_follows", "raw"),
}
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
OTHERS = """### Other measures, models of {0}s

Energy is the share of the positive evidence on {1}, in random poses.

"""


def others(by: str, where: str) -> Table:
    """The other measures, on the models of objects or on those of scenes."""
    columns = {
        "energy on it": (f"{by} energy_pointing", "transformed", "share"),
        "its area": (f"{by} energy_pointing", "transformed", "area"),
        "a central blob": (f"{by} energy_pointing", "transformed", "centre"),
        "patch deletion": (f"{by} patch_deletion", "correlation"),
        "its floor": (f"{by} patch_deletion", "floor"),
        "consistency, corners black": (f"{by} frame_control", "black", "calibrated"),
        "corners filled": (f"{by} frame_control", "filled", "calibrated"),
        "evidence, grey / real": (f"{by} frame_control", "evidence", "ratio"),
        "one-map share": (f"{by} one_map_share", "share"),
    }
    return Table(columns, lambda _: OTHERS.format(by, where))


def on_parts(run: Run, models: Sequence[str] = KINDS) -> OnParts:
    """The models of the experiment `bam` beside, trained if they are not there, and its test pictures."""
    found = models_beside(run.folder, quick=run.quick, progress=run.progress)
    size = found["site"].objects.config.image_shape[-1]
    test = painted_halves(size).test if run.quick else real_half("test", size, progress=run.progress)
    return OnParts(found, [Part("", test, MEASURES)], models)


def own_words(lines: Sequence[Row]) -> str:
    """What SITE's own maps do, in a sentence."""
    own = [line for line in lines if (line["model"], line["method"]) == ("site", "self_explanation")]
    said = []
    for who, right, its_score, wrong, rival in SAID:
        a, b = (look_up(own[0] if own else {}, *MOTIONS[name], "value") for name in (its_score, rival))
        if a is None or b is None:
            return ""
        said.append(f"{who} {right if a > b else wrong} ({right} {a:.3f}, {wrong} {b:.3f})")
    return f"SITE's own maps: {'; '.join(said)}.\n\n"


STUDY = Study(
    "{}_motion",
    "## {}: objects that move over scenes",
    [Table(MOTIONS), others("object", "the object"), others("scene", "all but the object")],
    quick_methods=("self_explanation", "gradient", "grad_cam", "random", *IGNORANT),
    on=on_parts,
    words=lambda result: WORDS + own_words(lines_of(result)),
    notes=notes_below,
    shown=("object map follows", "object map holds", "scene map stays"),
    chart="Maps that go with what they should go with",
)
