"""Predictions, before any explanation: right and wrong by class or label, and the worst mistakes.

    confusion[i][j] = how many pictures of class i are called j
    calibration     = mean over pictures of |accuracy - confidence| of their bin  (expected calibration error)

Of labels, of which several may be true of a picture:

| figure | what |
|---|---|
| n | pictures of which the label is true |
| average precision | the area under precision against recall; by chance the share of such pictures |
| auroc | how often a picture with the label has the larger logit than one without |
| sensitivity, specificity | the share of right answers among those with and without it |

Shares of single classes have Wilson intervals: a class may have a handful of pictures, all of them right, and
a bootstrap interval would then have no width.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torchmetrics.functional.classification import (
    binary_auroc,
    binary_average_precision,
    binary_precision_recall_curve,
    binary_roc,
    multiclass_calibration_error,
    multiclass_confusion_matrix,
)

from torchsite.metrics.estimate import Estimate, plain
from torchsite.shapes import Labels, Logits, MultiHot

N_BINS = 10
N_POINTS = 41
NORMAL_95 = 1.959964
AREAS: Mapping[str, Callable[..., Tensor]] = {
    "average_precision": binary_average_precision,
    "auroc": binary_auroc,
}


@dataclass(frozen=True, eq=False)
class Answers:
    """The logits of some pictures beside their true classes."""

    logits: Logits
    labels: Labels

    @property
    def predicted(self) -> Labels:
        """The class with the largest logit."""
        return self.logits.argmax(1)

    @property
    def confidence(self) -> Tensor:
        """The probability of the predicted class."""
        return self.logits.double().softmax(1).amax(1)

    @property
    def right(self) -> Tensor:
        """Whether the prediction is the true class."""
        return self.predicted == self.labels

    def confusion(self) -> list[list[int]]:
        """Rows are true classes, columns predicted ones."""
        counts: list[list[int]] = multiclass_confusion_matrix(
            self.predicted, self.labels, num_classes=self.logits.shape[1]
        ).tolist()
        return counts

    def per_class(self) -> list[dict[str, Any]]:
        """For each class: how many pictures, and the share that is put into it."""
        rows = self.confusion()
        return [{"n": sum(row), "accuracy": plain(wilson(row[i], sum(row)))} for i, row in enumerate(rows)]

    def calibration(self) -> dict[str, Any]:
        """The expected calibration error, and accuracy against confidence in bins of equal width."""
        bins = (self.confidence * N_BINS).long().clamp_max(N_BINS - 1)
        found = [
            self._bin(bins == number, number / N_BINS, (number + 1) / N_BINS) for number in range(N_BINS)
        ]
        shares = self.logits.double().softmax(1)
        error = multiclass_calibration_error(shares, self.labels, num_classes=shares.shape[1], n_bins=N_BINS)
        return {"error": float(error), "bins": found}

    def described(self) -> dict[str, Any]:
        """Confusion, accuracy of each class and calibration, as plain data."""
        return {
            "confusion": self.confusion(),
            "per_class": self.per_class(),
            "calibration": self.calibration(),
        }

    def mistakes(self, n: int) -> list[int]:
        """The positions of the wrong answers, the most confident first."""
        wrong = (~self.right).nonzero()[:, 0]
        order: list[int] = wrong[self.confidence[wrong].argsort(descending=True, stable=True)][:n].tolist()
        return order

    def _bin(self, inside: Tensor, low: float, high: float) -> dict[str, Any]:
        n = int(inside.sum())
        mean = {"confidence": self.confidence, "accuracy": self.right.double()}
        return {"low": low, "high": high, "n": n} | {
            name: float(values[inside].mean()) if n else None for name, values in mean.items()
        }


def wilson(hits: int, n: int) -> Estimate:
    """A share with the 95 % interval of Wilson's score test; nothing is known of no pictures."""
    if not n:
        return Estimate(math.nan, math.nan, math.nan)
    share, z = hits / n, NORMAL_95
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return Estimate(share, max(middle - reach, 0.0), min(middle + reach, 1.0))


def one_of_each(answers: Answers, n_classes: int) -> list[int]:
    """For each class the position of its first picture that is recognised, else of its first."""
    right, found = answers.right.tolist(), []
    for label in range(n_classes):
        positions: Sequence[int] = (answers.labels == label).nonzero()[:, 0].tolist()
        found += [next((p for p in positions if right[p]), positions[0])] if positions else []
    return found


@dataclass(frozen=True, eq=False)
class LabelAnswers:
    """The logits of some pictures beside the labels that are true of them."""

    logits: Logits
    multi_hot: MultiHot

    def curves(self, label: int) -> dict[str, list[list[float]]] | None:
        """Points of both curves from strict to lenient, thinned; None if true of all pictures or of none."""
        scores, truth = self.logits[:, label].sigmoid(), self.multi_hot[:, label].long()
        if not 0 < int(truth.sum()) < len(truth):
            return None
        alarms, hits, _ = binary_roc(scores, truth)
        precision, recall, _ = binary_precision_recall_curve(scores, truth)
        return {
            "roc": _thinned(alarms, hits),
            "precision_recall": _thinned(recall.flip(0), precision.flip(0)),
        }

    def surest(self) -> list[tuple[int, int]]:
        """For each label that any picture has: the position of that with the largest logit, and the label."""
        scores = self.logits.masked_fill(~self.multi_hot, -torch.inf)
        labels: list[int] = self.multi_hot.any(0).nonzero()[:, 0].tolist()
        return [(int(scores[:, label].argmax()), label) for label in labels]

    def mistakes(self, n: int) -> list[tuple[int, int]]:
        """Positions and labels of the answers that are furthest on the wrong side."""
        wrong = torch.where(self.multi_hot, -self.logits, self.logits)
        order = wrong.flatten().argsort(descending=True)[:n].tolist()
        places = [divmod(place, self.multi_hot.shape[1]) for place in order]
        return [place for place in places if wrong[place] > 0]


def label_figures(logits: Logits, multi_hot: MultiHot, classes: Sequence[str]) -> dict[str, Any]:
    """The figures of labels; what cannot be measured, since a label is true of all or of none, is None."""
    labels = {name: _figures(logits[:, i], multi_hot[:, i]) for i, name in enumerate(classes)}
    means = {}
    for figure in AREAS:
        known = [found[figure] for found in labels.values() if found[figure] is not None]
        means[figure] = sum(known) / len(known) if known else None
    right = int(((logits > 0) == multi_hot).sum())
    return {"labels": labels, "mean": means, "right_answers": plain(wilson(right, multi_hot.numel()))}


def _figures(scores: Tensor, truth: Tensor) -> dict[str, Any]:
    said, yes = scores > 0, int(truth.sum())
    both = 0 < yes < len(truth)
    return {
        "n": yes,
        **{
            name: float(area(scores.sigmoid(), truth.long())) if both else None
            for name, area in AREAS.items()
        },
        "sensitivity": plain(wilson(int((said & truth).sum()), yes)),
        "specificity": plain(wilson(int((~said & ~truth).sum()), len(truth) - yes)),
    }


def _thinned(x: Tensor, y: Tensor) -> list[list[float]]:
    places = torch.linspace(0, len(x) - 1, min(len(x), N_POINTS)).round().long()
    return [[round(float(a), 4), round(float(b), 4)] for a, b in zip(x[places], y[places], strict=True)]
