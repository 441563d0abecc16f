"""Cross-validation for few pictures, and whether a difference of two accuracies is more than chance.

With thirty test pictures an accuracy of 0.90 has an interval from 0.74 to 0.97. With K folds every picture is
tested once, by a model that was trained without it, so that the interval is that of all pictures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.evaluation.answers import NORMAL_95, wilson
from torchsite.evaluation.compare import Watch
from torchsite.evaluation.examine import ask
from torchsite.metrics.estimate import Estimate, plain
from torchsite.randomness import make_rng
from torchsite.training import fit
from torchsite.training.recipes import Recipe, build_model

Right = Bool[Tensor, " pictures"]


@dataclass(frozen=True)
class Folds:
    """The accuracy over all folds and in each, and which pictures were right."""

    accuracy: Estimate
    per_fold: tuple[float, ...]
    right: Right

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "accuracy": plain(self.accuracy),
            "per_fold": [round(share, 4) for share in self.per_fold],
            "n": len(self.right),
        }


def fold_numbers(labels: Sequence[int], k: int, seed: int) -> list[int]:
    """The fold of each picture: of every class about as many in each fold, in random order."""
    if not 2 <= k <= len(labels) // 2:
        raise ConfigError(f"folds: expected 2 to {len(labels) // 2} for {len(labels)} pictures, got {k}")
    numbers = [0] * len(labels)
    order = torch.randperm(len(labels), generator=make_rng(seed, "folds")).tolist()
    by_class = sorted(order, key=lambda row: labels[row])  # sorting is stable: random within a class
    for place, row in enumerate(by_class):
        numbers[row] = place % k
    return numbers


def joined(first: Dataset, second: Dataset) -> Dataset:
    """All pictures of both halves."""
    paths = (*first.paths, *second.paths) if first.paths and second.paths else ()
    if first.larger is not None and second.larger is not None:
        whole = (
            replace(half, images=larger, larger=None)
            for half, larger in ((first, first.larger), (second, second.larger))
        )
        return joined(*whole).with_margin(first.size)
    images, labels = (
        torch.cat([getattr(half, name) for half in (first, second)]) for name in ("images", "labels")
    )
    regions = first.regions
    if regions is not None:  # of the training pictures; nothing is ignored in the others
        regions = torch.cat([regions, regions.new_zeros(len(second), *regions.shape[1:])])
    return replace(first, images=images, labels=labels, paths=paths, split="", larger=None, regions=regions)


def cross_validate(
    recipe: Recipe,
    data: Dataset,
    k: int,
    folder: Path,
    *,
    seconds: float = math.inf,
    kind: str = "site",
    seed: int = 0,
    watch: Watch | None = None,
) -> Folds:
    """Train `k` models by the recipe, each without one fold, and test each on its fold.

    Each may train for at most `seconds`; its run stays below `folder`. `kind` may be "black_box", the network
    of the same budget without an explanation.
    """
    numbers = torch.tensor(fold_numbers(data.labels.tolist(), k, seed))
    settings = replace(recipe.model, kind=kind)  # type: ignore[arg-type]  # checked by the settings
    right, shares, given = torch.zeros(len(data), dtype=torch.bool), [], recipe.training
    for fold in range(k):
        ours, theirs = data[numbers != fold], data[numbers == fold]
        training = replace(
            given,
            batch_size=min(given.batch_size, len(ours)),
            n_validation=min(given.n_validation, len(theirs)),
            validate_every=given.epochs,
            seconds=seconds if math.isfinite(seconds) else given.seconds,
        )
        model = build_model(settings, ours, training)
        fit(model, ours, training, validation=theirs, folder=folder / f"{kind}-{fold + 1}")
        found = ask(model, theirs, None, 32).right
        right[numbers == fold] = found
        shares.append(float(found.float().mean()))
        if watch is not None:
            watch(f"fold {fold + 1} of {k}", fold + 1, k)
    return Folds(wilson(int(right.sum()), len(right)), tuple(shares), right)


def paired_difference(ours: Right, theirs: Right) -> Estimate:
    """The difference of two accuracies on the same pictures, with its 95 % interval.

    Only pictures that one names and the other does not count: d = (b - c)/n, var d = (b + c - (b - c)²/n)/n².
    One half is added to both, so that no difference at all is not certain either (Agresti and Min 2005).
    """
    n = len(ours) + 2
    b, c = float((ours & ~theirs).sum()) + 0.5, float((~ours & theirs).sum()) + 0.5
    value = (float(ours.sum()) - float(theirs.sum())) / max(1, len(ours))
    middle, reach = (b - c) / n, NORMAL_95 * math.sqrt(max(b + c - (b - c) ** 2 / n, 0.0)) / n
    return Estimate(value, max(-1.0, min(middle - reach, value)), min(1.0, max(middle + reach, value)))


def difference_in_words(found: Estimate, ours: str, theirs: str) -> str:
    """A difference of accuracies in words, with a warning if its interval holds zero."""
    value, low, high = (100 * number for number in found)
    text = f"{ours} minus {theirs}: {value:+.1f} points ({low:+.1f} to {high:+.1f})"
    if low <= 0 <= high:
        return f"{text}: within what chance does with so few pictures; do not conclude from it"
    return text
