"""The paper's pointing game on annotated MNIST, with self-consistency and its floors.

Claim: SITE's own explanation points at the digit's strokes in 0.9993 of transformed and 0.9996 of
untransformed pictures, above every post-hoc method on SITE and on the black box (appendix). The
paper names no tolerance, so the table has τ = 0 … 3, and the result says at which τ the claim first holds.

Command:  torchsite reproduce mnist_pointing
Cost:     SITE's own explanation and random maps on all 10,000 test pictures, as they are and once moved;
          post-hoc methods on the first 5,000, slow ones on fewer (`PASSES`); self-consistency on the first
          2,000 at most, under two transforms. 8 minutes on two cores. With --quick, 200
          pictures, and 4 for slow methods.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from matplotlib.figure import Figure
from torch import nn

from experiments.cache import save_result
from experiments.models import pair_beside
from experiments.registry import Arrays
from experiments.section import CONSISTENCY, MethodRow, Pictures, Score, source
from torchsite.attribution import METHODS
from torchsite.data import Dataset
from torchsite.evaluation.compare import MODEL, Comparison, compare
from torchsite.evaluation.fingerprints import weights_of
from torchsite.evaluation.methods import options_of
from torchsite.model import SITE, BlackBox
from torchsite.report.format import markdown_table, number, score
from torchsite.results import Result

TOLERANCES = (0, 1, 2, 3)
PARTS = ("pointing", "consistency")
POSES: tuple[Literal["transformed"], Literal["untransformed"]] = ("transformed", "untransformed")
FLOORS: tuple[Literal["anywhere"], Literal["centre"]] = ("anywhere", "centre")
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

N_POST_HOC = 5000
N_CONSISTENCY = 2000
ON_ALL = ("self_explanation", "random")
PASSES = 6_000  # that a slow method may take
N_QUICK_SLOW = 4


HIDDEN_NOTE = """Read the layer methods on SITE with care: its features are the pixels here, so the last layer
that all passes through is the picture, and Grad-CAM and Score-CAM there would be the picture times a number.
They read the last convolutions of the generator's encoder instead (`{layer}`), which a part of the evidence
by-passes; linear approximation and excitation backprop stay with the pixels.
"""
PIXELS_NOTE = """Read the layer methods on SITE with care: its features are the pixels here, so the last
layer that all passes through is the picture. Grad-CAM and Score-CAM there are the picture times one number: a
map that says nothing of the class, points at a stroke always, and moves with the picture by construction.
"""


class Row(MethodRow):
    """An explainer on a classifier: its hits for every τ in both poses, or the reason why there are none."""

    transformed: NotRequired[Mapping[str, Score]]
    untransformed: NotRequired[Mapping[str, Score]]
    anywhere: NotRequired[dict[str, float | None]]
    centre: NotRequired[dict[str, float | None]]
    self_consistency: NotRequired[dict[str, Score]]


class Values(TypedDict):
    """What the result file holds."""

    table: list[Row]
    accuracy: dict[str, Any]
    verdict: dict[str, int | None]
    paper: Mapping[str, Sequence[float | None]]


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Play the game on the models of the MNIST experiment beside `folder`, or on the shipped ones."""
    pair = pair_beside("mnist", folder, quick=quick, progress=progress)
    return play(pair.site, pair.black_box, pair.test, folder, quick=quick)


def play(
    site: SITE,
    black_box: BlackBox,
    data: Dataset,
    folder: Path,
    *,
    methods: Sequence[str] | None = None,
    quick: bool = False,
    seed: int = 0,
) -> Result:
    """Play the game with every method on both models; a run resumes from `folder`."""
    start = time.perf_counter()
    names = list(METHODS) if methods is None else list(methods)
    dataset = data[:200] if quick else data
    values: Values = {"table": [], "accuracy": {}, "verdict": {}, "paper": dict(PAPER)}
    for kind, model in (("site", site), ("black_box", black_box)):
        for limit, group in _by_limit(names, len(dataset), quick).items():
            ask = partial(_compared, model, dataset, group, limit, seed=seed)
            files = [folder / f"{kind}-{limit}-{part}.json" for part in PARTS]
            metrics = ["pointing_game", "accuracy"] if limit == len(dataset) else ["pointing_game"]
            game = ask(metrics, n_transforms=1, out=files[0])
            consistency = ask(["self_consistency"], n_transforms=2, out=files[1])
            values["table"] += [_row(game, consistency, kind, method) for method in group]
            model_cell = game.cell(MODEL, "accuracy")
            if model_cell is not None:
                values["accuracy"][kind] = model_cell.values
    values["verdict"] = verdict(values["table"])
    config = {
        "recipe": "mnist",
        "data": data.title,
        "weights": {"site": weights_of(site), "black_box": weights_of(black_box)},
        "n_images": len(dataset),
        "n_consistency": N_CONSISTENCY,
        "quick": quick,
    }
    result = Result("mnist_pointing", values, config, seed, time.perf_counter() - start)
    return save_result(result, folder)


def verdict(table: Sequence[Row]) -> dict[str, int | None]:
    """The smallest τ at which SITE's own explanation reaches the paper's score; None if at no τ."""
    own = [row for row in table if (row["model"], row["method"]) == ("site", "self_explanation")]
    found: dict[str, int | None] = {}
    for pose, wanted in CLAIM.items():
        scores = _pointing(own[0], pose) if own else {}
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
        found = _pointing(row, pose)
        scores = [number(found[f"tau_{t}"]["value"]) if found else "–" for t in TOLERANCES]
        floor = number(row.get("anywhere", {}).get(pose))
        yield [row["method"], row["model"], pose, *scores, number(paper), floor, str(row["n_images"])]


def _consistency_cells(row: Row) -> list[str]:
    if "reason" in row:
        return [row["method"], row["model"], f"not defined: {row['reason']}", *["–"] * 4]
    scores = [score(row.get("self_consistency"), name) for name in CONSISTENCY]
    return [row["method"], row["model"], *scores, number(row.get("ms_per_image"), 2)]


def _pointing(row: Row, pose: str) -> Mapping[str, Score]:
    return row.get("transformed", {}) if pose == "transformed" else row.get("untransformed", {})


def _by_limit(names: Sequence[str], n: int, quick: bool) -> dict[int, list[str]]:
    """The methods that get so many pictures: slow ones fewer, and in a slice a few."""
    groups: dict[int, list[str]] = {}
    for name in names:
        limit = n if name in ON_ALL else METHODS[name].n_pictures(N_POST_HOC, PASSES)
        limit = N_QUICK_SLOW if quick and METHODS[name].is_slow() else limit
        groups.setdefault(min(limit, n), []).append(name)
    return groups


def _compared(
    model: nn.Module,
    dataset: Dataset,
    methods: list[str],
    limit: int,
    metrics: list[str],
    **options: Any,
) -> Comparison:
    if metrics == ["self_consistency"]:
        limit = min(limit, N_CONSISTENCY)
    how = {name: options_of(name, model) for name in methods}
    return compare(
        model, data=dataset, methods=methods, metrics=metrics, limit=limit, method_options=how, **options
    )


def _row(game: Comparison, consistencies: Comparison, kind: str, method: str) -> Row:
    """One explainer on one classifier, or the reason why it does not apply."""
    pointing = game.cell(method, "pointing_game")
    consistency = consistencies.cell(method, "self_consistency")
    row: Row = {
        "model": kind,
        "method": method,
        "n_images": game.config["n_images"],
        "options": dict(pointing.options) if pointing is not None else {},
    }
    for cell in (pointing, consistency):
        if cell is not None and cell.reason is not None:
            return {**row, "reason": cell.reason}
    if pointing is not None and pointing.values is not None:
        for pose in POSES:
            row[pose] = {name: found["score"] for name, found in pointing.values[pose].items()}
        for floor in FLOORS:
            row[floor] = {pose: pointing.values[pose]["tau_0"][floor]["value"] for pose in POSES}
    if consistency is not None and consistency.values is not None:
        row["self_consistency"] = {name: consistency.values[name] for name in CONSISTENCY}
    row["ms_per_image"] = game.cost(method)
    return row
