"""The leaderboard: self-explaining models and post-hoc methods, one protocol, one budget, several seeds.

Claim:    none in advance. Every model is trained here, in the one loop, on the same pictures in the same
          views, for the same multiply-accumulates; every explainer is measured on the same pictures and
          poses, beside map-makers that know nothing. Where SITE is not first, the section says so.
Command:  torchsite reproduce leaderboard     (some rows: --only b_cos,cam; one's own: --add FILE)
Cost:     three trainings of less than a minute for each of eight models on CIFAR-10, shorter ones on
          Fashion-MNIST and BAM; about an hour of one core with all measures. Every training and every measure
          is a file: lanes can share the work, `measure(folder, data=["bam"], seeds=[0])`. With --quick, a few
          digits.
"""

import runpy
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.cache import save_result
from experiments.leaderboard.board import Board, boards, total
from experiments.leaderboard.entries import ENTRIES, Entry
from experiments.leaderboard.fields import COMMON
from experiments.leaderboard.steps import all_steps, plan, weights_in
from experiments.leaderboard.tables import (
    agreement_words,
    dot_figure,
    fooled_words,
    plain_words,
    rank_figure,
    table_of,
    weak_words,
)
from experiments.registry import Arrays
from experiments.section import Pictures, source
from torchsite.errors import ConfigError
from torchsite.report.format import markdown_table
from torchsite.results import Result

NAME = "leaderboard"


def run(
    folder: Path,
    *,
    entries: Sequence[Entry] = ENTRIES,
    only: Sequence[str] = (),
    add: Path | None = None,
    data: Sequence[str] = (),
    seeds: Sequence[int] = (),
    finished: bool = False,
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Train and measure what is not in `folder` yet; the result has the rows, data sets and seeds asked for.

    `add` is a file of one's own whose `ENTRIES` are those of the board from then on. With `finished` nothing
    is trained: the board is made of the seeds in which all its models are there.
    """
    started = time.monotonic()
    chosen = read_entries(add) if add is not None else entries
    asked = plan(folder, entries=chosen, only=only, data=data, seeds=seeds, quick=quick, finished=finished)
    lines = list(all_steps(asked, progress=progress))
    found = boards(asked, lines)
    config = {
        "quick": quick,
        "weights": weights_in(lines),
        "seeds": list(asked.seeds),
        "training": {name: list(v) if isinstance(v, tuple) else v for name, v in COMMON.items()},
        "pmac": {field.name: field.pmac for field in asked.fields},
        "terms": {
            entry.name: [{"name": term.name, **asdict(term)} for term in entry.terms]
            for entry in asked.entries
        },
    }
    values = {"boards": found, "total": total(found)}
    return save_result(Result(NAME, values, config, 0, time.monotonic() - started), folder)


def read_entries(path: Path) -> tuple[Entry, ...]:
    """The entries that a file of the user's own names as `ENTRIES`."""
    if not path.is_file():
        raise ConfigError(f"{path}: expected a Python file that defines ENTRIES, found none there")
    found = runpy.run_path(str(path)).get("ENTRIES", ())
    if not found or not all(isinstance(entry, Entry) for entry in found):
        raise ConfigError(f"{path}: expected ENTRIES, a list of experiments.leaderboard.Entry")
    return tuple(found)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """Ranks on every data set; four scores as dots, one for each seed."""
    found: Mapping[str, Board] = result.values["boards"]
    drawn = {f"{NAME}-{name}": rank_figure(board) for name, board in found.items()}
    return {**drawn, f"{NAME}-scores": dot_figure(found)}


def section(result: Result, pictures: Pictures) -> str:
    """All boards, with what they say of SITE in plain words, and what they cost."""
    found: Mapping[str, Board] = result.values["boards"]
    parts = [
        f"## Leaderboard: self-explaining models and post-hoc methods\n\n{source(result)}\n\n",
        _protocol(result),
        pictures.chart(f"{NAME}-scores", "Four scores of every row, a dot for each seed"),
    ]
    for name, board in found.items():
        parts += [
            f"\n### {board['title']}\n\n{plain_words(board)}\n\n",
            f"{agreement_words(board)} {fooled_words(board)}{weak_words(board)}\n\n",
            table_of(board),
            _notes(board),
            pictures.chart(f"{NAME}-{name}", f"{board['title']}: ranks by measure"),
        ]
    return "".join([*parts, _costs(result)])


def _protocol(result: Result) -> str:
    training = result.config["training"]
    corners = ", ".join(dict.fromkeys(training["corners"]))
    return (
        f"Every model is trained from nothing in several seeds ({_seeds(result)}), for the same "
        "multiply-accumulates on each data set, on pictures upright and posed (±90°, ±25 %; corners "
        f"{corners}). Scores are means ± standard deviations over seeds, on the same test pictures in the "
        "same poses. Gains are against a random ranking of the pixels; deletion gains, sanity (the size of "
        "the rank correlation with maps of randomised weights) and cost are better when lower. The best of "
        "each column is bold. Rows that know nothing of any model come last and are not ranked: a score that "
        "they reach is no merit. Post-hoc methods stand on the black box of the same budget. All of this is "
        "small: figures compare rows with each other, not with trainings of full length.\n"
    )


def _seeds(result: Result) -> str:
    found: Mapping[str, Board] = result.values["boards"]
    return ", ".join(f"{board['title']} {len(board['seeds'])}" for board in found.values())


def _count(n: int, what: str) -> str:
    words = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}
    return f"{words.get(n, n)} {what}{'s' if n != 1 else ''}"


def _notes(board: Board) -> str:
    reasons: dict[str, str] = {}
    for row in board["rows"]:
        for measure, reason in row["reasons"].items():
            reasons.setdefault(f"{row['title']}, {measure.replace('_', ' ')}", reason)
    counts: dict[str, set[int]] = {}
    for row in board["rows"]:
        for measure, n in row["n_images"].items():
            counts.setdefault(measure, set()).add(n)
    seen = ", ".join(
        f"{measure.replace('_', ' ')} {max(n)}" + (f" (slow methods {min(n)})" if len(n) > 1 else "")
        for measure, n in counts.items()
        if measure != "cost"
    )
    return "\n".join([f"\nPictures: {seen}.", *(f"- {who}: {why}" for who, why in reasons.items()), ""])


def _costs(result: Result) -> str:
    found: Mapping[str, Board] = result.values["boards"]
    names = list(dict.fromkeys(name for board in found.values() for name in board["pmac"]))
    titles = {
        row["entry"]: row["title"] if row["kind"] == "itself" else row["title"].split(" on ")[-1]
        for board in reversed(list(found.values()))
        for row in reversed(board["rows"])
        if row["kind"] != "ignorant"
    }
    rows = [[titles.get(name, name), *(_cost(board, name) for board in found.values())] for name in names]
    all_of_it: Mapping[str, Any] = result.values["total"]
    return (
        "\nWhat each training took, in PMAC (10¹⁵ multiply-accumulates), with the epochs that this gives and "
        "the millions of multiply-accumulates of one view:\n\n"
        + markdown_table(["model", *(board["title"] for board in found.values())], rows)
        + f"\nIn all: {all_of_it['trainings']} trainings, {all_of_it['pmac']:.4f} PMAC, "
        f"{all_of_it['training hours']:.2f} hours of training and {all_of_it['measuring hours']:.2f} hours "
        "of measuring by the clock, on one core of a machine that did much other work as well.\n"
    )


def _cost(board: Board, name: str) -> str:
    if name not in board["pmac"]:
        return "–"
    each = board["pmac"][name]
    mean = sum(each) / len(each)
    epochs = _count(board["epochs"][name], "epoch")
    return f"{mean:.2g} ({epochs}, {1000 * board['gmac_per_view'][name]:.1f} M)"
