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

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from experiments.registry import Arrays
from experiments.section import Pictures, Row, head
from experiments.study import IGNORANT_MARK, Amount, Study, saved
from experiments.tables import (
    Columns,
    Scores,
    drawn,
    notes_below,
    scores_of,
    table_of,
)
from torchsite.results import Result

# The columns of the table: what each is called, its measure, and where its score stands.
COLUMNS: Columns = {
    "consistency, corners black": ("frame_control", ("black", "calibrated")),
    "corners filled": ("frame_control", ("filled", "calibrated")),
    "grey pictures, raw": ("frame_control", ("content_free", "raw")),
    "evidence, grey / real": ("frame_control", ("evidence", "ratio")),
    "one-map share": ("one_map_share", ("share",)),
    "patch deletion": ("patch_deletion", ("correlation",)),
    "its floor": ("patch_deletion", ("floor",)),
    "grid pointing, 2×2 (¼)": ("grid_pointing", ("share",)),
    "deletion, gain, black": ("deletion", ("fills", "black", "gain")),
    "deletion, gain, blur": ("deletion", ("fills", "blur", "gain")),
    "insertion, gain, black": ("insertion", ("fills", "black", "gain")),
    "insertion, gain, blur": ("insertion", ("fills", "blur", "gain")),
}
SHOWN = ("corners filled", "patch deletion", "grid pointing, 2×2 (¼)", "one-map share")
OWN_SCORES = (
    "consistency, corners black",
    "corners filled",
    "evidence, grey / real",
    "one-map share",
    "patch deletion",
    "its floor",
)


FRACTIONS = (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)
CONFIDENCE = 0.5  # that a picture of a mosaic is named with: label smoothing and additivity keep it below 0.9
STUDY = Study(
    "truth",
    measures={
        "patch_deletion": Amount(1000, slow=200),
        "one_map_share": Amount(1000, slow=200),
        "frame_control": Amount(1000, slow=16),
        "grid_pointing": Amount(150, slow=8),
        "insertion": Amount(200),
        "deletion": Amount(200),
    },
    options={
        "grid_pointing": {"confidence": CONFIDENCE},
        "insertion": {"fractions": FRACTIONS},
        "deletion": {"fractions": FRACTIONS},
    },
    slow_options={"grid_pointing": {"confidence": CONFIDENCE, "sides": (2,)}},
)


def run(
    recipe: str,
    folder: Path,
    *,
    methods: Sequence[str] | None = None,
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Measure every method on both models of the recipe; finished steps are taken from `folder`."""
    return saved(STUDY.run(recipe, folder, methods=methods, quick=quick, progress=progress)[0], folder)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """The scores that matter most, by method, on both models; black corners beside filled ones."""
    return {result.name: drawn(scores_of(result.values["table"], COLUMNS), SHOWN)}


def section(result: Result, pictures: Pictures) -> str:
    """All scores of all methods, then of the map-makers that know nothing, and what they say of us."""
    table: list[Row] = result.values["table"]
    scores = scores_of(table, COLUMNS)
    return (
        head(result, "measures that a template cannot pass")
        + PLAIN_WORDS
        + (GREY_WORDS if _strict(table) else KIND_WORDS)
        + (IGNORANT_WORDS if any(method.startswith(IGNORANT_MARK) for _, method in scores) else "")
        + "\n\n"
        + _own_words(scores)
        + table_of(scores, COLUMNS)
        + notes_below(table)
        + pictures.chart(result.name, "Filled corners, patch deletion, grid pointing, one-map share")
    )


PLAIN_WORDS = (
    "Posed pictures have black corners, which tell a network the pose; a map can follow them instead of "
    "what is seen. So consistency is given with black corners, as in Table 1, and with corners filled (the "
    "picture's mean colour, another picture, a reflection; their mean). The floor of patch deletion is what "
    "the map of another picture gets. "
)
GREY_WORDS = "Grey pictures are explained for the class that the model itself sees in them."
KIND_WORDS = (
    "Grey pictures are explained for the class of the real one; for the class that the model sees in them "
    "there is more evidence."
)
IGNORANT_WORDS = (
    " The last rows of each model are map-makers that know nothing of it: a score that they reach is no "
    "merit."
)


def _strict(table: Sequence[Row]) -> bool:
    """Whether grey pictures were explained for the class seen in them: not so in the first files."""
    controls = [row for row in table if row["metric"] == "frame_control" and row["values"] is not None]
    return all(row["options"].get("definition", 1) > 1 for row in controls)


def _own_words(scores: Scores) -> str:
    """What the measures say of SITE's own maps, in a sentence."""
    own = scores.get(("site", "self_explanation"), {})
    if any(own.get(name, {}).get("value") is None for name in OWN_SCORES):
        return ""
    black, filled, grey, one, patch, floor = (own[name]["value"] for name in OWN_SCORES)
    return (
        f"SITE's own maps: calibrated consistency is {black:.3f} with black corners and {filled:.3f} "
        f"with filled ones; grey pictures without content get {grey:.0%} of the evidence of real ones; one "
        f"mean map explains {one:.0%} of the energy of all; the rank correlation with hiding patches is "
        f"{patch:.3f}, where maps of other pictures get {floor:.3f}.\n\n"
    )
