"""What each part of the method gives: SITE with and without its terms, by the leaderboard's protocol.

Claim:    none in advance: λ of the transformation loss, sampled targets against the closed form, the direct
          term, additive evidence; the same network, pictures, views, arithmetic and measures for all.
Command:  torchsite reproduce ablation
Cost:     one short training for each of the eight rows and each seed, and their measures: some minutes of one
          core. With --quick, a few digits.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from experiments.cache import save_result
from experiments.leaderboard.board import Board, boards, total
from experiments.leaderboard.entries import EXTRACTOR, SHIPPED, SITE_PARTS, Entry, site
from experiments.leaderboard.steps import all_steps, plan, weights_in
from experiments.leaderboard.tables import dot_figure, table_of
from experiments.registry import Arrays
from experiments.section import Pictures, source
from torchsite.objective import Term, TransformationTerm
from torchsite.results import Result

NAME = "ablation"
DATA = "cifar10"
QUICK_DATA = "digits"


def _row(name: str, title: str, *terms: Term, relative: bool = False, generator: str = "spatial") -> Entry:
    return Entry(name, title, site(EXTRACTOR, generator, relative, **SITE_PARTS), terms)


def _trans(weight: float, targets: str = "mean") -> TransformationTerm:
    return TransformationTerm(weight=weight, targets=targets)  # type: ignore[arg-type]


_TRANS, _DIRECT, _ADDITIVE, _CONCISE = SHIPPED
ROWS: tuple[Entry, ...] = (
    _row("lambda_0", "λ = 0: no L_trans"),
    _row("lambda_half", "λ = 0.5, closed form", _trans(0.5)),
    _row("lambda_5", "λ = 5, closed form (the paper's)", _trans(5.0)),
    _row("lambda_5_sampled", "λ = 5, sampled", _trans(5.0, "sampled")),
    _row("direct", "λ = 0.25, direct term", _TRANS, _DIRECT, relative=True),
    _row("additive", "and L_add", _TRANS, _DIRECT, _ADDITIVE, relative=True),
    _row("shipped", "and concise (as shipped)", *SHIPPED, relative=True),
    _row("mixed", "as shipped, mixed prototypes", *SHIPPED, relative=True, generator="mixed"),
)


def run(
    folder: Path,
    *,
    only: Sequence[str] = (),
    seeds: Sequence[int] = (0,),
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Train and measure what is not in `folder` yet."""
    started = time.monotonic()
    data = [QUICK_DATA if quick else DATA]
    asked = plan(folder, entries=ROWS, only=only, data=data, seeds=seeds, quick=quick)
    lines = list(all_steps(asked, progress=progress))
    found = boards(asked, lines)
    config = {"quick": quick, "seeds": list(asked.seeds), "pmac": asked.fields[0].pmac}
    config["weights"] = weights_in(lines)
    values = {"boards": found, "total": total(found)}
    return save_result(Result(NAME, values, config, 0, time.monotonic() - started), folder)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """Four scores as dots."""
    found: Mapping[str, Board] = result.values["boards"]
    return {NAME: dot_figure(found)}


def section(result: Result, pictures: Pictures) -> str:
    """The table, and what it took."""
    (board,) = result.values["boards"].values()
    n, took = len(result.config["seeds"]), result.values["total"]
    seeds = (
        "one seed: differences of a few hundredths mean nothing" if n == 1 else f"{n} seeds, mean ± spread"
    )
    return (
        f"## What each part gives: λ, targets and terms on {board['title']}\n\n{source(result)}\n\n"
        f"The protocol and the measures are the leaderboard's; every row costs {result.config['pmac']:g} "
        f"PMAC, {seeds}. The first four rows show the paper's maps, the others maps relative to all classes. "
        "Pictures with hidden blocks, which L_add compares, are paid for from the same budget: those rows "
        "see fewer pictures.\n\n"
        + table_of(board)
        + f"\nIn all {took['pmac']:.4f} PMAC, {60 * took['training hours']:.0f} minutes of training and "
        f"{60 * took['measuring hours']:.0f} of measuring, on a machine that did other work as well.\n"
        + pictures.chart(NAME, "Four scores of every row")
    )
