"""Which post-hoc methods stand in the tables, with which options, and one measure of all of them.

Every method on every model is a step of its own, a file that is taken as it is when the run goes on. Methods
that ask the model many times for a picture get fewer pictures, the first ones; tables state how many.

A SITE model stands in them twice: with the maps that it shows, and with the other kind that the same weights
give (relative to all classes, or the paper's, which are not).
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.models import Pair
from experiments.section import MethodRow
from torchsite.attribution import METHODS
from torchsite.evaluation.compare import compare
from torchsite.evaluation.comparison import Cell
from torchsite.evaluation.methods import applies, options_of
from torchsite.model import SITE, BlackBox

log = logging.getLogger(__name__)

OptionsOf = Callable[[str, SITE | BlackBox], dict[str, Any]]


def quick_limits() -> dict[str, int]:
    """How many pictures each method gets in a slice: a dozen, slow ones a few."""
    return {name: 4 if method.is_slow() else 12 for name, method in METHODS.items()}


def measured(
    pair: Pair,
    metric: str,
    folder: Path,
    *,
    n_pictures: Mapping[str, int],
    n_transforms: int,
    methods: Sequence[str] | None = None,
    batch_size: int = 64,
    seed: int = 0,
) -> Iterator[tuple[str, int, Cell]]:
    """One measure of every method on both models: the model's kind, how many pictures, the cell."""
    for kind, model in pair:
        for name, method, options in rows_for(model, METHODS if methods is None else methods):
            started = time.monotonic()
            limit = min(n_pictures.get(method, len(pair.test)), len(pair.test))
            comparison = compare(
                model,
                data=pair.test,
                methods=[method],
                metrics=[metric],
                family=model.config.family,
                n_transforms=n_transforms,
                seed=seed,
                limit=limit,
                batch_size=batch_size,
                method_options={method: options},
                out=folder / "steps" / f"{kind}-{name}.json",
            )
            log.info("%s of %s on %s: %.0f s", metric, name, kind, time.monotonic() - started)
            yield kind, limit, replace(comparison.cells[0], method=name)


def rows_for(
    model: SITE | BlackBox, methods: Iterable[str], options_of: OptionsOf = options_of
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The rows of a table for one model: how each is called, its method, and the method's options."""
    for method in methods:
        if applies(method, model):
            yield method, method, options_of(method, model)
            if method == "self_explanation":
                assert isinstance(model, SITE)
                relative = not model.config.zero_sum
                yield (
                    "relative_explanation" if relative else "plain_explanation",
                    method,
                    {"relative": relative},
                )


def row_of(kind: str, n_images: int, cell: Cell) -> MethodRow:
    """What every row of a table begins with: who explains what, on how many pictures, at what cost."""
    row: MethodRow = {
        "model": kind,
        "method": cell.method,
        "n_images": n_images,
        "options": dict(cell.options),
    }
    if cell.reason is not None:
        return {**row, "reason": cell.reason}
    cost = 1000 * cell.explain_seconds / cell.n_explained if cell.n_explained else None
    return {**row, "ms_per_image": cost, "seconds": cell.seconds}
