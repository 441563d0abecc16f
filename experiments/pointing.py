"""The paper's pointing game on annotated MNIST, with self-consistency and its floors.

Claim: SITE's own explanation points at the digit's strokes in 0.9993 of transformed and 0.9996 of
untransformed pictures, above every post-hoc method on SITE and on the black box (appendix). The
paper names no tolerance, so the table has τ = 0 … 3, and the result says at which τ the claim first holds.

Command:  torchsite reproduce mnist_pointing
Cost:     all 10,000 test pictures, as they are and once moved, slow methods on fewer (`PASSES`);
          self-consistency on the first 2,000 at most, under two transforms. About 15 minutes on two cores.
          With --quick, a dozen pictures, and 4 for slow methods.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.measuring import Asked
from experiments.study import Study, as_lines
from experiments.tables import CONSISTENCY, Cell, Columns, Row, Table, lines_of, notes_on
from torchsite.attribution import METHODS
from torchsite.report.format import number
from torchsite.results import Result

CLAIM = {"transformed": 0.9993, "untransformed": 0.9996}
TOLERANCES = (0, 1, 2, 3)
# On SITE and on the black box, transformed and untransformed.
PAPER: Mapping[str, Mapping[str, tuple[float | None, float | None]]] = {
    "transformed": {
        "self_explanation": (0.9993, None),
        "gradient": (0.5423, 0.8992),
        "grad_cam": (0.7726, 0.7730),
        "linear_approximation": (0.6540, 0.9577),
        "deconvnet": (0.2546, 0.6895),
        "excitation_backprop": (0.3588, 0.9892),
        "guided_backprop": (0.4664, 0.9974),
    },
    "untransformed": {
        "self_explanation": (0.9996, None),
        "gradient": (0.7741, 0.9540),
        "grad_cam": (0.8138, 0.8062),
        "linear_approximation": (0.8381, 0.9856),
        "deconvnet": (0.3128, 0.6553),
        "excitation_backprop": (0.4716, 0.9979),
        "guided_backprop": (0.8825, 0.9990),
    },
}
PASSES = 6_000  # that a slow method may take
WORDS = """Read the layer methods on SITE with care: its features are the pixels here, so the last layer that
all passes through is the picture. Grad-CAM and Score-CAM read the last convolutions of the generator's
encoder instead (`layer` below), which a part of the evidence by-passes; linear approximation and excitation
backprop stay with the pixels.

"""


def keep(row: Row) -> dict[str, Any]:
    """Of the game the score at every τ and what any point and the centre get; of consistency four scores."""
    values = row["values"]
    if row["metric"] == "self_consistency":
        return {row["metric"]: {name: values[name] for name in CONSISTENCY}}
    scores = {pose: {name: one["score"] for name, one in values[pose].items()} for pose in CLAIM}
    floors = ("anywhere", "centre")
    return scores | {
        floor: {pose: values[pose]["tau_0"][floor]["value"] for pose in CLAIM} for floor in floors
    }


def verdict(table: Sequence[Row]) -> dict[str, int | None]:
    """The smallest τ at which SITE's own explanation reaches the paper's score; None if at no τ."""
    own = [row for row in table if (row["model"], row["method"]) == ("site", "self_explanation")]
    found: dict[str, int | None] = {}
    for pose, wanted in CLAIM.items():
        scores = own[0].get(pose, {}) if own else {}
        reached = (t for t in TOLERANCES if scores and (scores[f"tau_{t}"]["value"] or 0.0) >= wanted)
        found[pose] = next(reached, None)
    return found


def words(result: Result) -> str:
    """From which τ on the paper's claim holds, and how to read methods of layers."""
    reached = "; ".join(
        f"{pose} ≥ {CLAIM[pose]}: " + (f"from τ = {tau}" if tau is not None else "at no τ")
        for pose, tau in verdict(lines_of(result)).items()
    )
    return f"SITE's own explanation, {reached}.\n\n{WORDS}"


def game(pose: str) -> Table:
    """The score at every τ beside the paper's, and what any point gets."""

    def paper(line: Row) -> str:
        return number(PAPER[pose].get(line["method"], (None, None))[line["model"] != "site"])

    scores: Columns = {f"τ={tau}": (pose, f"tau_{tau}") for tau in TOLERANCES}
    others: Mapping[str, Cell] = {
        "paper": paper,
        "any point, τ=0": lambda line: number(line["anywhere"][pose]),
        "pictures": lambda line: f"{line['n_images']:,}",
    }
    return Table({**scores, **others}, lambda _: f"### The game, pictures {pose}\n\n", digits=4)


MS: Mapping[str, Cell] = {"ms a picture": lambda line: number(line.get("ms_per_image"), 2)}
STUDY = Study(
    "{}_pointing",
    "## {}: the pointing game and self-consistency, all methods",
    [
        *(game(pose) for pose in CLAIM),
        Table(
            {**{name: ("self_consistency", name) for name in CONSISTENCY}, **MS},
            lambda _: "### Self-consistency\n\n",
            digits=4,
            interval=True,
        ),
    ],
    {
        "pointing_game": Asked(10_000, passes=PASSES),
        "self_consistency": Asked(2000, passes=PASSES, n_transforms=2),
    },
    methods=tuple(METHODS),
    gather=as_lines(keep),
    words=words,
    notes=notes_on,
)
