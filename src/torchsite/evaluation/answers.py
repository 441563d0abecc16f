"""What a model answers, before any explanation: right and wrong by class, confidence, its worst mistakes.

    confusion[i][j] = how many pictures of class i are called j
    calibration     = mean over pictures of |accuracy - confidence| of their bin  (expected calibration error)

Accuracies of single classes have Wilson intervals: a class may have a handful of pictures, all of them right,
and a bootstrap would then claim to be certain.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torchmetrics.functional.classification import multiclass_calibration_error, multiclass_confusion_matrix

from torchsite.metrics.estimate import Estimate, plain
from torchsite.shapes import Labels, Logits

N_BINS = 10
NORMAL_95 = 1.959964


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

    def calibration(self, n_bins: int = N_BINS) -> dict[str, Any]:
        """The expected calibration error, and accuracy against confidence in bins of equal width."""
        bins = (self.confidence * n_bins).long().clamp_max(n_bins - 1)
        found = [
            self._bin(bins == number, number / n_bins, (number + 1) / n_bins) for number in range(n_bins)
        ]
        shares = self.logits.double().softmax(1)
        error = multiclass_calibration_error(shares, self.labels, num_classes=shares.shape[1], n_bins=n_bins)
        return {"error": float(error), "bins": found}

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


def describe_answers(answers: Answers) -> Mapping[str, Any]:
    """All that the answers show, as plain data."""
    return {
        "confusion": answers.confusion(),
        "per_class": answers.per_class(),
        "calibration": answers.calibration(),
    }
