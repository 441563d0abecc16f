"""The paper's pointing game on annotated MNIST, with self-consistency and its floors.

Claim: SITE's own explanation points at the digit's strokes in 0.9993 of transformed and 0.9996 of
untransformed pictures, above every post-hoc method on SITE and on the black box (appendix). The
paper names no tolerance, so the table has τ = 0 … 3, and the result says at which τ the claim first holds.

Command:  torchsite reproduce mnist_pointing
Cost:     all 10,000 test pictures, as they are and once moved, slow methods on fewer (`PASSES`);
          self-consistency on the first 2,000 at most, under two transforms. About 15 minutes on two cores.
          With --quick, a dozen pictures, and 4 for slow methods.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from experiments.registry import Arrays
from experiments.section import CONSISTENCY, Pictures, Row, source
from experiments.study import Amount, Study, saved, without_values
from torchsite.attribution import METHODS
from torchsite.report.format import markdown_table, number, score
from torchsite.results import Result

TOLERANCES = (0, 1, 2, 3)
POSES = ("transformed", "untransformed")
FLOORS = ("anywhere", "centre")
CLAIM = {"transformed": 0.9993, "untransformed": 0.9996}
GAME = [
    *("explainer", "classifier", "pose"),
    *(f"τ={tolerance}" for tolerance in TOLERANCES),
    *("paper", "any point, τ=0", "pictures"),
]

# Transformed SITE / black box, untransformed SITE / black box.
PAPER: Mapping[str, tuple[float | None, float | None, float | None, float | None]] = {
    "self_explanation": (0.9993, None, 0.9996, None),
    "gradient": (0.5423, 0.8992, 0.7741, 0.9540),
    "grad_cam": (0.7726, 0.7730, 0.8138, 0.8062),
    "linear_approximation": (0.6540, 0.9577, 0.8381, 0.9856),
    "deconvnet": (0.2546, 0.6895, 0.3128, 0.6553),
    "excitation_backprop": (0.3588, 0.9892, 0.4716, 0.9979),
    "guided_backprop": (0.4664, 0.9974, 0.8825, 0.9990),
}

PASSES = 6_000  # that a slow method may take


HIDDEN_NOTE = """Read the layer methods on SITE with care: its features are the pixels here, so the last layer
that all passes through is the picture, and Grad-CAM and Score-CAM there would be the picture times a number.
They read the last convolutions of the generator's encoder instead (`{layer}`), which a part of the evidence
by-passes; linear approximation and excitation backprop stay with the pixels.
"""
PIXELS_NOTE = """Read the layer methods on SITE with care: its features are the pixels here, so the last
layer that all passes through is the picture. Grad-CAM and Score-CAM there are the picture times one number: a
map that says nothing of the class, points at a stroke always, and moves with the picture by construction.
"""


STUDY = Study(
    "pointing",
    {"pointing_game": Amount(10_000, passes=PASSES), "self_consistency": Amount(2000, passes=PASSES)},
    tuple(METHODS),
    n_transforms={"self_consistency": 2},
)


def run(
    folder: Path,
    *,
    methods: Sequence[str] | None = None,
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Play the game on the models of the MNIST experiment beside `folder`, or on the shipped ones."""
    result, _ = STUDY.run("mnist", folder, methods=methods, quick=quick, progress=progress)
    table = gathered(result.values["table"])
    return saved(result, folder, table=table, verdict=verdict(table), paper=dict(PAPER))


def gathered(rows: Sequence[Row]) -> list[Row]:
    """One row for each explainer on each model, of the rows of both measures."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        line = found.setdefault((row["model"], row["method"]), without_values(row))
        values = row["values"]
        if values is None:
            line["reason"] = row.get("reason", "")
        elif row["metric"] == "self_consistency":
            line["self_consistency"] = {name: values[name] for name in CONSISTENCY}
        else:
            for pose in POSES:
                line[pose] = {name: one["score"] for name, one in values[pose].items()}
            for floor in FLOORS:
                line[floor] = {pose: values[pose]["tau_0"][floor]["value"] for pose in POSES}
    return list(found.values())


def verdict(table: Sequence[Row]) -> dict[str, int | None]:
    """The smallest τ at which SITE's own explanation reaches the paper's score; None if at no τ."""
    own = [row for row in table if (row["model"], row["method"]) == ("site", "self_explanation")]
    found: dict[str, int | None] = {}
    for pose, wanted in CLAIM.items():
        scores = own[0].get(pose, {}) if own else {}
        reached = (t for t in TOLERANCES if scores and (scores[f"tau_{t}"]["value"] or 0.0) >= wanted)
        found[pose] = next(reached, None)
    return found


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """None: this result is two tables."""
    return {}


def section(result: Result, pictures: Pictures) -> str:
    """The game for every τ, ours beside the paper's; then self-consistency with its floors."""
    table: list[Row] = result.values["table"]
    reached = "; ".join(
        f"{pose} ≥ {CLAIM[pose]}: " + (f"from τ = {tau}" if tau is not None else "at no τ")
        for pose, tau in result.values["verdict"].items()
    )
    where = source(result).removesuffix(")") + f", {result.seconds / 60:.0f} minutes)"
    return (
        "## Pointing game and self-consistency on MNIST, all methods\n\n"
        f"{where}. SITE's own explanation, {reached}.\n\n"
        f"{_layer_note(table)}\n"
        + markdown_table(GAME, [cells for row in table for cells in _game_cells(row)], left=3)
        + _refused(table)
        + "\n### Self-consistency\n\n"
        + markdown_table(
            ["explainer", "classifier", *CONSISTENCY, "ms a picture"], [_consistency_cells(r) for r in table]
        )
    )


def _refused(table: Sequence[Row]) -> str:
    refused = [f"- {row['method']} on {row['model']}: {row['reason']}\n" for row in table if "reason" in row]
    return "".join(["\n", *refused]) if refused else ""


def _layer_note(table: Sequence[Row]) -> str:
    """Which layer Grad-CAM read on SITE: a hidden one, or the pixels."""
    rows = [row for row in table if (row["model"], row["method"]) == ("site", "grad_cam")]
    layer = rows[0].get("options", {}).get("layer") if rows else None
    return PIXELS_NOTE if layer is None else HIDDEN_NOTE.format(layer=layer)


def _game_cells(row: Row) -> Iterator[list[str]]:
    for column, pose in ((0, "transformed"), (2, "untransformed")):
        paper = PAPER.get(row["method"], (None,) * 4)[column + (row["model"] != "site")]
        found = row.get(pose)
        scores = [number(found[f"tau_{t}"]["value"]) if found else "–" for t in TOLERANCES]
        floor = number(row.get("anywhere", {}).get(pose))
        yield [row["method"], row["model"], pose, *scores, number(paper), floor, str(row["n_images"])]


def _consistency_cells(row: Row) -> list[str]:
    if "reason" in row:
        return [row["method"], row["model"], f"not defined: {row['reason']}", *["–"] * 4]
    scores = [score(row.get("self_consistency"), name) for name in CONSISTENCY]
    return [row["method"], row["model"], *scores, number(row.get("ms_per_image"), 2)]
