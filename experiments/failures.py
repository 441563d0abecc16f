"""Pictures that SITE gets wrong: the evidence for the true class, for the predicted one, and the difference.

Claim:    a mistake can be read off the explanation: `why(true, predicted)` shows which pixels spoke for the
          wrong class, and its sum is the difference of the two logits (the paper's failure cases).
Command:  torchsite reproduce cifar10_failures   (or mnist_failures)
Cost:     one pass over the test set; seconds.
"""

import time
from collections import Counter
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from experiments.cache import save_result
from experiments.models import pair_beside
from experiments.registry import Arrays
from experiments.section import Pictures, head
from experiments.shown import Rows, logits_of, show_overlay
from experiments.tables import Row
from torchsite.data import Dataset, to_float
from torchsite.model import SITE
from torchsite.model.drawing import new_figure, show_heatmap, show_picture
from torchsite.report.format import markdown_table
from torchsite.results import Result
from torchsite.shapes import Logits

N_SHOWN = 5
N_CONFUSIONS = 10


def run(recipe: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Explain the most confident mistakes, no two of one true class, and count the commonest confusions."""
    started = time.monotonic()
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    logits = logits_of(pair.site, pair.test)
    wrong = logits.argmax(1) != pair.test.labels
    mistakes, arrays = _explained(pair.site, pair.test, confident_mistakes(logits, pair.test))
    values = {
        "pictures": mistakes,
        "n_wrong": int(wrong.sum()),
        "n_images": len(pair.test),
        "confusions": confusions(logits, pair.test),
    }
    config = pair.description() | {"recipe": recipe, "quick": quick}
    result = Result(f"{recipe}_failures", values, config, 0, time.monotonic() - started)
    return save_result(result, folder, arrays)


def confident_mistakes(logits: Logits, data: Dataset, n: int = N_SHOWN) -> Rows:
    """The mistakes with the largest probability, the largest first, at most one of each true class."""
    confidence, predicted = logits.softmax(1).max(1)
    order = torch.where(predicted != data.labels, confidence, -1.0).argsort(descending=True, stable=True)
    rows: dict[int, int] = {}
    for row in order[: int((predicted != data.labels).sum())].tolist():
        rows.setdefault(int(data.labels[row]), row)
    return torch.tensor(list(rows.values())[:n], dtype=torch.int64)


def confusions(logits: Logits, data: Dataset, n: int = N_CONFUSIONS) -> list[Row]:
    """The commonest mistakes: true class, predicted class, how often."""
    pairs = zip(data.labels.tolist(), logits.argmax(1).tolist(), strict=True)
    counts = Counter((true, predicted) for true, predicted in pairs if true != predicted)
    return [
        {"class": data.classes[true], "predicted": data.classes[predicted], "n": count}
        for (true, predicted), count in counts.most_common(n)
    ]


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """Mistakes: the picture, evidence for the true and for the predicted class, and the difference."""
    mistakes: list[Row] = result.values["pictures"]
    if not mistakes or not arrays:
        return {}
    figure, grid = new_figure(6, len(mistakes), 1.25)
    for column, one in enumerate(mistakes):
        image = arrays["images"][column]
        true, predicted = arrays["true_maps"][column], arrays["predicted_maps"][column]
        limit = float(max(true.abs().max(), predicted.abs().max()))
        show_picture(grid[0][column], image, f"{one['class']}, seen as {one['predicted']}")
        show_heatmap(grid[1][column], true, f"for {one['class']}: {one['logit of the class']:.1f}", limit)
        show_overlay(grid[2][column], image, true)
        total = one["logit of the predicted"]
        show_heatmap(grid[3][column], predicted, f"for {one['predicted']}: {total:.1f}", limit)
        show_overlay(grid[4][column], image, predicted)
        show_heatmap(grid[5][column], arrays["why"][column], f"difference: {difference(one):.1f}")
    return {result.name: figure}


def section(result: Result, pictures: Pictures) -> str:
    """The commonest mistakes, and the ones that were made with the greatest confidence."""
    mistakes: list[Row] = result.values["pictures"]
    counted: list[Row] = result.values["confusions"]
    common = [[one["class"], one["predicted"], str(one["n"])] for one in counted]
    confident = [
        [
            str(one["row"]),
            one["class"],
            one["predicted"],
            f"{one['probability']:.3f}",
            f"{difference(one):.2f}",
        ]
        for one in mistakes
    ]
    title = "Mistakes: evidence for the class, for what was seen, and the difference"
    return (
        head(result, "failure cases")
        + f"{result.values['n_wrong']:,} of {result.values['n_images']:,} pictures are classified wrongly. "
        "The commonest mistakes:\n\n"
        + markdown_table(["class", "seen as", "pictures"], common)
        + "\nThe most confident ones, no two of one class; the difference of the logits is the sum of "
        "`why(class, seen as)`:\n\n"
        + markdown_table(["picture", "class", "seen as", "probability", "difference"], confident)
        + (pictures.sheet(result.name, title) if mistakes else "")
    )


def difference(mistake: Row) -> float:
    """How much more the model finds for the true class than for the predicted one: less than 0."""
    return mistake["logit of the class"] - mistake["logit of the predicted"]


def _explained(model: SITE, data: Dataset, rows: Rows) -> tuple[list[Row], dict[str, Tensor]]:
    images, true = to_float(data.images[rows]), data.labels[rows]
    explanation = model.explain(images)
    predicted = explanation.predicted
    mistakes: list[Row] = [
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
        "why": explanation.contrast(true, predicted),
    }
    return mistakes, arrays
