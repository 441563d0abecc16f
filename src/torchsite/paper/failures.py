"""Pictures that SITE gets wrong: the evidence for the true class, for the predicted one, and the difference.

Claim:    a mistake can be read off the explanation: `why(true, predicted)` shows which pixels spoke for the
          wrong class, and its sum is the difference of the two logits (the paper's failure cases).
Command:  torchsite reproduce cifar10_failures   (or mnist_failures)
Cost:     one pass over the test set; seconds.
"""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchsite.data import Dataset, batches, to_float
from torchsite.model import SITE
from torchsite.paper.models import pair_beside
from torchsite.paper.shown import Rows, keep
from torchsite.results import Result
from torchsite.shapes import Logits

N_SHOWN = 5
N_CONFUSIONS = 10


def run(recipe: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Explain the most confident mistakes, no two of one true class, and count the commonest confusions."""
    started = time.monotonic()
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    logits = _logits(pair.site, pair.test)
    wrong = logits.argmax(1) != pair.test.labels
    notes, arrays = _explained(pair.site, pair.test, confident_mistakes(logits, pair.test))
    values = {
        "pictures": notes,
        "n_wrong": int(wrong.sum()),
        "n_images": len(pair.test),
        "confusions": confusions(logits, pair.test),
    }
    config = pair.description() | {"recipe": recipe, "quick": quick}
    return keep(f"{recipe}_failures", folder, values, config, arrays, time.monotonic() - started)


def confident_mistakes(logits: Logits, data: Dataset, n: int = N_SHOWN) -> Rows:
    """The mistakes with the largest probability, the largest first, at most one of each true class."""
    confidence, predicted = logits.softmax(1).max(1)
    order = torch.where(predicted != data.labels, confidence, -1.0).argsort(descending=True, stable=True)
    rows: dict[int, int] = {}
    for row in order[: int((predicted != data.labels).sum())].tolist():
        rows.setdefault(int(data.labels[row]), row)
    return torch.tensor(list(rows.values())[:n], dtype=torch.int64)


def confusions(logits: Logits, data: Dataset, n: int = N_CONFUSIONS) -> list[dict[str, Any]]:
    """The commonest mistakes: true class, predicted class, how often."""
    pairs = zip(data.labels.tolist(), logits.argmax(1).tolist(), strict=True)
    counts = Counter((true, predicted) for true, predicted in pairs if true != predicted)
    return [
        {"class": data.classes[true], "predicted": data.classes[predicted], "n": count}
        for (true, predicted), count in counts.most_common(n)
    ]


def _logits(model: SITE, data: Dataset, batch_size: int = 250) -> Logits:
    with torch.no_grad():
        return torch.cat([model.eval()(images) for images, _ in batches(data, batch_size)])


def _explained(model: SITE, data: Dataset, rows: Rows) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    images, true = to_float(data.images[rows]), data.labels[rows]
    explanation = model.explain(images)
    predicted = explanation.predicted
    notes = [
        {
            "row": int(rows[i]),
            "class": data.classes[int(true[i])],
            "predicted": data.classes[int(predicted[i])],
            "probability": float(explanation.probabilities[i, predicted[i]]),
            "logit of the class": float(explanation.logits[i, true[i]]),
            "logit of the predicted": float(explanation.logits[i, predicted[i]]),
        }
        for i in range(len(rows))
    ]
    arrays = {
        "images": images,
        "true_maps": explanation.heatmaps(classes=true),
        "predicted_maps": explanation.heatmaps(classes=predicted),
        "why": explanation.why(true, predicted),
    }
    return notes, arrays
