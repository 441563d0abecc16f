"""An estimate is a value with its 95 % interval, from a bootstrap that streams.

The Poisson bootstrap gives image i the weight w_ir ~ Poisson(1) in resample r, drawn from a generator named
by the seed and the image's index. A resample is then a weighted sum, so a measure only ever holds sums: one
row with weight 1 (the value itself) and one row per resample. Sums add up across batches, processes and
machines in any order, which is why a distributed run gives the interval of a single one. Resampled is the
image, never the transform: the scores of one picture under several transforms are not independent.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from torchsite.randomness import make_rng

COVERAGE = 0.95
N_RESAMPLES = 1000
Figures = TypeVar("Figures")


class Estimate(NamedTuple):
    """A value and the bounds of its bootstrap interval; all NaN if nothing was observed."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def resample_weights(
    indices: Int64[Tensor, " batch"], n_resamples: int, seed: int
) -> Float[Tensor, "resamples batch"]:
    """Row 0 is all ones; row r is how often each image is in resample r."""
    ones = torch.ones(n_resamples, dtype=torch.float64)
    columns = [
        torch.poisson(ones, generator=make_rng(seed, "bootstrap", index)) for index in indices.tolist()
    ]
    weights = torch.stack(columns, dim=1) if columns else ones.new_zeros(n_resamples, 0)
    return torch.cat([weights.new_ones(1, len(indices)), weights])


def estimate(rows: Float[Tensor, " resamples"]) -> Estimate:
    """The first row is the value, the others the percentile interval; undefined resamples drop out."""
    value, resampled = float(rows[0]), rows[1:][rows[1:].isfinite()].cpu()
    if len(resampled) == 0:
        return Estimate(value, math.nan, math.nan)
    tail = (1 - COVERAGE) / 2
    low, high = torch.quantile(resampled, torch.tensor([tail, 1 - tail], dtype=rows.dtype)).tolist()
    return Estimate(value, low, high)


def estimates(rows: Float[Tensor, "resamples *groups"]) -> list[Estimate]:
    """One estimate per group, the group axes flattened."""
    return [estimate(column) for column in rows.flatten(1).T.cpu()]


def each_group(kind: Callable[..., Figures], *scores: Float[Tensor, "resamples *groups"]) -> list[Figures]:
    """One `kind` for each group; its fields are the estimates of these scores."""
    return [kind(*fields) for fields in zip(*map(estimates, scores), strict=True)]


def ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Numerator / denominator, NaN where nothing was counted: a mean over no samples has no value."""
    return torch.where(denominator > 0, numerator / denominator.clamp_min(1e-300), math.nan)


def plain(result: Any) -> Any:
    """A result as JSON data: named tuples become mappings, and NaN, which JSON lacks, becomes None."""
    if isinstance(result, tuple) and hasattr(result, "_asdict"):
        return {name: plain(value) for name, value in result._asdict().items()}
    if isinstance(result, Mapping):
        return {str(name): plain(value) for name, value in result.items()}
    if isinstance(result, Sequence) and not isinstance(result, str):
        return [plain(value) for value in result]
    return None if isinstance(result, float) and not math.isfinite(result) else result


def look_up(values: Any, *path: str) -> Any:
    """The value at a path within a result, or within its plain form; None if there is none."""
    for step in path:
        values = values._asdict() if hasattr(values, "_asdict") else values
        if not isinstance(values, Mapping) or step not in values:
            return None
        values = values[step]
    return values


def score_paths(values: Any, pattern: str) -> list[tuple[str, ...]]:
    """The paths of the scores of a headline within a result or its plain form, one for each filling.

    Files from before a measure had fillings hold the figures of the first in the place of all.
    """
    before, starred, after = pattern.partition("fills.*.")
    if not starred:
        return [tuple(pattern.split("."))]
    head, tail = tuple(before.split(".")[:-1]), tuple(after.split("."))
    fills = look_up(values, *head, "fills")
    return [(*head, "fills", name, *tail) for name in fills] if fills else [(*head, *tail)]


def scores_of(result: Any, headline: Sequence[str]) -> dict[str, float]:
    """The values of a headline's scores by their dotted places in a result."""
    paths = [path for pattern in headline for path in score_paths(result, pattern)]
    found = {".".join(path): look_up(result, *path) for path in paths}
    return {name: getattr(score, "value", score) for name, score in found.items()}
