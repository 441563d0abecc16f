"""The steps of the experiment on the truth of maps: one file for each model, method and measure.

Hidden patches and random rankings are the same for all methods, and several measures ask for the same maps:
answers are remembered for the whole run, maps as long as a method's turn lasts.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from torchsite.attribution import METHODS
from torchsite.evaluation.compare import compare
from torchsite.evaluation.comparison import Cell
from torchsite.evaluation.remembering import Remembering
from torchsite.metrics import IGNORANT
from torchsite.model import SITE, BlackBox
from torchsite.paper.methods import rows_for
from torchsite.paper.models import Pair, pair_beside
from torchsite.shapes import Images, Labels

log = logging.getLogger(__name__)

IGNORANT_MARK = "ignorant_"
MODELS = ("site", "black_box")
FRACTIONS = (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "insertion": {"fractions": FRACTIONS},
    "deletion": {"fractions": FRACTIONS},
}
N_PICTURES: Mapping[str, int] = {
    "patch_deletion": 1000,
    "one_map_share": 1000,
    "frame_control": 1000,
    "grid_pointing": 300,
    "insertion": 200,
    "deletion": 200,
}
N_SLOW: Mapping[str, int] = {
    "patch_deletion": 200,
    "one_map_share": 200,
    "frame_control": 32,
    "grid_pointing": 32,
    "insertion": 200,
    "deletion": 200,
}
N_QUICK = 12

Explain = Callable[[Images, Labels], Tensor]


def measure(
    recipe: str,
    folder: Path,
    *,
    models: Sequence[str] = MODELS,
    methods: Sequence[str] | None = None,
    quick: bool = False,
) -> int:
    """The steps of some of the models and methods, for a lane of its own; how many there are."""
    pair = pair_beside(recipe, folder, quick=quick)
    return sum(1 for _ in steps(pair, folder, models=models, methods=methods, quick=quick))


def steps(
    pair: Pair,
    folder: Path,
    *,
    models: Sequence[str] = MODELS,
    methods: Sequence[str] | None = None,
    quick: bool = False,
) -> Iterator[tuple[str, int, Cell]]:
    """Every measure of every method on every model: the model's kind, how many pictures, the cell."""
    for kind, model in pair:
        if kind not in models:
            continue
        answering = Remembering(model)  # hidden patches and random rankings are the same for all methods
        for name, options, slow, explain in _explainers(model, methods):
            limits = dict.fromkeys(N_PICTURES, N_QUICK) if quick else N_SLOW if slow else N_PICTURES
            recalling = _Recalling(explain)
            for metric, n in limits.items():
                started = time.monotonic()
                extra = {"sides": (2,)} if slow and metric == "grid_pointing" else {}
                found = compare(
                    answering,
                    data=pair.test,
                    methods={name: recalling},
                    metrics=[metric],
                    family=model.config.family,
                    n_transforms=1,
                    limit=n,
                    method_options={name: options},
                    metric_options={metric: {**OPTIONS.get(metric, {}), **extra}},
                    out=folder / "steps" / f"{kind}-{name}-{metric}.json",
                )
                log.info("%s of %s on %s: %.0f s", metric, name, kind, time.monotonic() - started)
                yield kind, min(n, len(pair.test)), replace(found.cells[0], method=name)


def _explainers(
    model: SITE | BlackBox, methods: Sequence[str] | None
) -> Iterator[tuple[str, dict[str, Any], bool, Explain]]:
    """Each row's name, its options, whether it is slow, and what explains: methods, then the ignorant."""
    asked = {*METHODS, *(IGNORANT_MARK + name for name in IGNORANT)} if methods is None else set(methods)
    fast_first = sorted((name for name in METHODS if name in asked), key=lambda name: METHODS[name].passes)
    for name, method, options in rows_for(model, fast_first):
        kind = METHODS[method]
        yield name, options, kind.is_slow(), kind(model, **options)
    for name, maker in IGNORANT.items():
        if IGNORANT_MARK + name in asked:
            yield IGNORANT_MARK + name, {}, False, maker


class _Recalling:
    """An explainer that explains the same pictures once, for the measures that ask for the same maps."""

    def __init__(self, explain: Explain) -> None:
        self.explain = explain
        self.known: dict[bytes, Tensor] = {}

    def __call__(self, images: Images, classes: Labels) -> Tensor:
        """The maps, made or recalled."""
        pixels = images.detach().cpu().contiguous()
        text = repr((tuple(pixels.shape), classes.tolist())).encode()
        key = hashlib.blake2b(text + pixels.numpy().tobytes(), digest_size=16).digest()
        if key not in self.known:
            self.known[key] = self.explain(images, classes).detach()
        return self.known[key]
