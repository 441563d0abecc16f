"""Whether maps are true: the measures that a template cannot pass, for all methods on both models.

Claim:    of the methods that take one pass, SITE's maps come nearest to what hiding a patch does, follow the
          picture whatever its corners show, and say nothing of pictures without content. Not first of all:
          occlusion, which hides patches itself, is truer; and one mean map explains most of all maps.
          Beside the methods stand six map-makers that know nothing of the model: what fools a measure is
          no merit in it.
Command:  torchsite reproduce cifar10_truth   (or mnist_truth)
Cost:     as many of the test pictures as `STUDY` says, in one pose; slow methods get fewer.
          CIFAR-10 with the pyramid: about 75 minutes of one core. Two lanes can share the work, each with
          `truth.STUDY.measure(recipe, folder, models=("site",))` or ("black_box",); the command then gathers
          their steps. With --quick, a dozen digits.
"""

from collections.abc import Mapping

from experiments.measuring import Asked
from experiments.study import Study
from experiments.tables import IGNORANT_MARK, Place, Table, lines_of, notes_below
from torchsite.report.format import look_up
from torchsite.results import Result

COLUMNS: Mapping[str, Place] = {
    "consistency, corners black": ("frame_control", "black", "calibrated"),
    "corners filled": ("frame_control", "filled", "calibrated"),
    "grey pictures, raw": ("frame_control", "content_free", "raw"),
    "evidence, grey / real": ("frame_control", "evidence", "ratio"),
    "one-map share": ("one_map_share", "share"),
    "patch deletion": ("patch_deletion", "correlation"),
    "its floor": ("patch_deletion", "floor"),
    "grid pointing, 2×2 (¼)": ("grid_pointing", "share"),
    "deletion, gain, black": ("deletion", "fills", "black", "gain"),
    "deletion, gain, blur": ("deletion", "fills", "blur", "gain"),
    "insertion, gain, black": ("insertion", "fills", "black", "gain"),
    "insertion, gain, blur": ("insertion", "fills", "blur", "gain"),
}
WORDS = """Posed pictures have black corners, which tell a network the pose; a map can follow them instead \
of what is seen. So consistency is given with black corners, as in Table 1, and with corners filled (the \
picture's mean colour, another picture, a reflection; their mean). The floor of patch deletion is what the \
map of another picture gets. Grey pictures are explained for the class that the model itself sees in them."""
IGNORANT_WORDS = """ The last rows of each model are map-makers that know nothing of it: a score that they \
reach is no merit."""
OWN_WORDS = """SITE's own maps: calibrated consistency is {0:.3f} with black corners and {1:.3f} with \
filled ones; grey pictures without content get {2:.0%} of the evidence of real ones; one mean map explains \
{3:.0%} of the energy of all; the rank correlation with hiding patches is {4:.3f}, where maps of other \
pictures get {5:.3f}.\n
"""
OF_OWN = (
    *("consistency, corners black", "corners filled", "evidence, grey / real"),
    *("one-map share", "patch deletion", "its floor"),
)


def words(result: Result) -> str:
    """What the columns are, and what they say of SITE's own maps."""
    lines = lines_of(result)
    ignorant = any(line["method"].startswith(IGNORANT_MARK) for line in lines)
    own = [line for line in lines if (line["model"], line["method"]) == ("site", "self_explanation")]
    found = [look_up(line, *COLUMNS[name], "value") for line in own for name in OF_OWN]
    said = OWN_WORDS.format(*found) if found and None not in found else ""
    return WORDS + (IGNORANT_WORDS if ignorant else "") + "\n\n" + said


MOSAIC = {"confidence": 0.5}  # that its pictures are named with: label smoothing and additivity keep it low
CURVE = {"fractions": (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)}
STUDY = Study(
    "{}_truth",
    "## {}: measures that a template cannot pass",
    [Table(COLUMNS)],
    measures={
        "patch_deletion": Asked(1000, slow=200),
        "one_map_share": Asked(1000, slow=200),
        "frame_control": Asked(1000, slow=16),
        "grid_pointing": Asked(150, slow=8, options=MOSAIC, slow_options={**MOSAIC, "sides": (2,)}),
        "insertion": Asked(200, options=CURVE),
        "deletion": Asked(200, options=CURVE),
    },
    words=words,
    notes=notes_below,
    shown=("corners filled", "patch deletion", "grid pointing, 2×2 (¼)", "one-map share"),
    chart="Filled corners, patch deletion, grid pointing, one-map share",
)
