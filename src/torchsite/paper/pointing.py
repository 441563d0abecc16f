"""The paper's pointing game on annotated MNIST, with self-consistency and its floors.

Claim: SITE's own explanation points at the digit's strokes in 0.9993 of transformed and 0.9996 of
untransformed pictures, above every post-hoc method on SITE and on the black box (appendix). The
paper names no tolerance, so the table has τ = 0 … 3, and the result says at which τ the claim first holds.

Command:  python -m torchsite.paper.pointing SITE BLACK_BOX --out FOLDER  [--quick]
Cost:     SITE's own explanation and random maps on all 10,000 test pictures, as they are and once moved;
          post-hoc methods on the first 5,000, slow ones on fewer (`PASSES`); self-consistency on the first
          2,000 at most, under two transforms. 8 minutes on two cores. With --quick, 200 pictures.
"""

import argparse
import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from torchsite.attribution import METHODS
from torchsite.data import Dataset, load_dataset
from torchsite.evaluation.compare import MODEL, Comparison, Watch, compare
from torchsite.evaluation.methods import options_of
from torchsite.model import load
from torchsite.report.format import markdown_table, number
from torchsite.results import Result

TOLERANCES = (0, 1, 2, 3)
PARTS = ("pointing", "consistency")
CLAIM = {"transformed": 0.9993, "untransformed": 0.9996}

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


def run(
    site: nn.Module,
    black_box: nn.Module,
    data: Dataset,
    *,
    methods: Sequence[str] | None = None,
    quick: bool = False,
    seed: int = 0,
    out: Path | str | None = None,
    watch: Watch | None = None,
) -> Result:
    """Play the game with every method on both models; `out` is a folder from which a run resumes."""
    start = time.perf_counter()
    names = list(METHODS) if methods is None else list(methods)
    dataset = data[:200] if quick else data
    table: list[dict[str, Any]] = []
    accuracy: dict[str, Any] = {}
    for kind, model in (("site", site), ("black_box", black_box)):
        for limit, group in _by_limit(names, len(dataset)).items():
            play = partial(_compared, model, dataset, group, limit, seed=seed, watch=watch)
            files = [None if out is None else Path(out) / f"{kind}-{limit}-{part}.json" for part in PARTS]
            metrics = ["pointing_game", "accuracy"] if limit == len(dataset) else ["pointing_game"]
            game = play(metrics, n_transforms=1, out=files[0])
            consistency = play(["self_consistency"], n_transforms=2, out=files[1])
            table += [_line(game, consistency, kind, method) for method in group]
            model_cell = game.cell(MODEL, "accuracy")
            if model_cell is not None:
                accuracy[kind] = model_cell.values
    values = {"table": table, "accuracy": accuracy, "verdict": verdict(table), "paper": dict(PAPER)}
    config = {"data": data.title, "n_images": len(dataset), "n_consistency": N_CONSISTENCY, "quick": quick}
    result = Result("mnist_pointing", values, config, seed, time.perf_counter() - start)
    if out is not None:
        result.save(Path(out) / "mnist_pointing.json")
    return result


def verdict(table: Sequence[Mapping[str, Any]]) -> dict[str, int | None]:
    """The smallest τ at which SITE's own explanation reaches the paper's score; None if at no τ."""
    own = [line for line in table if (line["model"], line["method"]) == ("site", "self_explanation")]
    found: dict[str, int | None] = {}
    for pose, wanted in CLAIM.items():
        scores = {t: own[0][pose][f"tau_{t}"]["value"] for t in TOLERANCES} if own and pose in own[0] else {}
        found[pose] = next((t for t, score in scores.items() if score is not None and score >= wanted), None)
    return found


def to_markdown(result: Result) -> str:
    """The table: ours for every τ, the paper's beside it."""
    taus = [f"τ={t}" for t in TOLERANCES]
    header = ["explainer", "classifier", "pose", *taus, "paper", "any point, τ=0", "pictures"]
    rows = []
    for line in result.values["table"]:
        for column, pose in ((0, "transformed"), (2, "untransformed")):
            paper = PAPER.get(line["method"], (None,) * 4)[column + (line["model"] != "site")]
            scores = [number(line.get(pose, {}).get(f"tau_{t}", {}).get("value")) for t in TOLERANCES]
            floor = number(line.get("anywhere", {}).get(pose))
            cells = [
                line["method"],
                line["model"],
                pose,
                *scores,
                number(paper),
                floor,
                str(line["n_images"]),
            ]
            rows.append(cells)
    refused = [line for line in result.values["table"] if "reason" in line]
    notes = [f"- {line['method']} on {line['model']}: {line['reason']}" for line in refused]
    return "\n".join([markdown_table(header, rows, left=3), *notes]).rstrip() + "\n"


def _by_limit(names: Sequence[str], n: int) -> dict[int, list[str]]:
    groups: dict[int, list[str]] = {}
    for name in names:
        limit = n if name in ON_ALL else METHODS[name].n_pictures(N_POST_HOC, PASSES)
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


def _line(game: Comparison, consistencies: Comparison, kind: str, method: str) -> dict[str, Any]:
    """One explainer on one classifier, or the reason why it does not apply."""
    line: dict[str, Any] = {"model": kind, "method": method, "n_images": game.config["n_images"]}
    pointing = game.cell(method, "pointing_game")
    line["options"] = dict(pointing.options) if pointing is not None else {}
    consistency = consistencies.cell(method, "self_consistency")
    for cell in (pointing, consistency):
        if cell is not None and cell.reason is not None:
            return line | {"reason": cell.reason}
    if pointing is not None and pointing.values is not None:
        for pose in CLAIM:
            line[pose] = {name: score["score"] for name, score in pointing.values[pose].items()}
        line["anywhere"] = {p: pointing.values[p]["tau_0"]["anywhere"]["value"] for p in CLAIM}
        line["centre"] = {p: pointing.values[p]["tau_0"]["centre"]["value"] for p in CLAIM}
    if consistency is not None and consistency.values is not None:
        names = ("raw", "floor", "calibrated", "centred")
        line["self_consistency"] = {name: consistency.values[name] for name in names}
    return line | {"ms_per_image": game.cost(method)}


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("site")
    parser.add_argument("black_box")
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--out", type=Path, default=Path("results/mnist_pointing"))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    data = load_dataset(options.data, split="test")
    result = run(load(options.site), load(options.black_box), data, quick=options.quick, out=options.out)
    logging.getLogger(__name__).info("%s\n%s", to_markdown(result), result.values["verdict"])


if __name__ == "__main__":
    main()
