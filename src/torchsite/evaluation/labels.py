"""Measures of a model whose pictures may have several labels, label by label.

| figure | what |
|---|---|
| n | pictures of which the label is true |
| average precision | the area under precision against recall; by chance the share of such pictures |
| auroc | how often a picture with the label has the larger logit than one without |
| sensitivity, specificity | the share of right answers among those with and without it |
"""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Bool
from torch import Tensor
from torchmetrics.functional.classification import binary_auroc, binary_average_precision

from torchsite.evaluation.answers import wilson
from torchsite.metrics.estimate import plain
from torchsite.shapes import Logits

MEANS = ("average_precision", "auroc")


def label_figures(
    logits: Logits, marks: Bool[Tensor, "batch classes"], classes: Sequence[str]
) -> dict[str, Any]:
    """The figures from logits; what cannot be measured, since a label is true of all or of none, is None."""
    labels = {name: _figures(logits[:, i], marks[:, i]) for i, name in enumerate(classes)}
    means = {}
    for figure in MEANS:
        known = [found[figure] for found in labels.values() if found[figure] is not None]
        means[figure] = sum(known) / len(known) if known else None
    right = int(((logits > 0) == marks).sum())
    return {"labels": labels, "mean": means, "right_answers": plain(wilson(right, marks.numel()))}


def _figures(scores: Tensor, truth: Tensor) -> dict[str, Any]:
    said, yes = scores > 0, int(truth.sum())
    both = 0 < yes < len(truth)
    return {
        "n": yes,
        "average_precision": float(binary_average_precision(scores.sigmoid(), truth.long()))
        if both
        else None,
        "auroc": float(binary_auroc(scores.sigmoid(), truth.long())) if both else None,
        "sensitivity": plain(wilson(int((said & truth).sum()), yes)),
        "specificity": plain(wilson(int((~said & ~truth).sum()), len(truth) - yes)),
    }
