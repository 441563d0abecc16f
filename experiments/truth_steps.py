"""The steps of the experiment on the truth of maps: one file for each model, method and measure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.measuring import Measuring, capped, explainers
from experiments.models import Pair, pair_beside
from torchsite.evaluation.cached import Cached
from torchsite.evaluation.comparison import Cell

MODELS = ("site", "black_box")
FRACTIONS = (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)
CONFIDENCE = 0.5  # that a picture of a mosaic is named with: label smoothing and additivity keep it below 0.9
OPTIONS: dict[str, Mapping[str, Any]] = {
    "grid_pointing": {"confidence": CONFIDENCE},
    "insertion": {"fractions": FRACTIONS},
    "deletion": {"fractions": FRACTIONS},
}
N_PICTURES: Mapping[str, int] = {
    "patch_deletion": 1000,
    "one_map_share": 1000,
    "frame_control": 1000,
    "grid_pointing": 150,
    "insertion": 200,
    "deletion": 200,
}
N_SLOW: Mapping[str, int] = {
    "patch_deletion": 200,
    "one_map_share": 200,
    "frame_control": 16,
    "grid_pointing": 8,
    "insertion": 200,
    "deletion": 200,
}
N_QUICK = 12


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
        usual = Measuring(kind, Cached(model), model, pair.test, folder / "steps", OPTIONS)
        fewer = replace(usual, options=OPTIONS | {"grid_pointing": {"confidence": CONFIDENCE, "sides": (2,)}})
        for explaining in explainers(model, methods):
            measuring, limits = (fewer, N_SLOW) if explaining.slow else (usual, N_PICTURES)
            for n, cell in measuring.cells(explaining, capped(limits, N_QUICK if quick else None)):
                yield kind, n, cell
