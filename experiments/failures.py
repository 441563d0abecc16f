"""Pictures that SITE gets wrong: the evidence for the true class, for the predicted one, and the difference.

Claim:    a mistake can be read off the explanation: `why(true, predicted)` shows which pixels spoke for the
          wrong class, and its sum is the difference of the two logits (the paper's failure cases).
Command:  torchsite reproduce cifar10_failures   (or mnist_failures)
Cost:     one pass over the test set; seconds.
"""

from collections import Counter

import torch
from matplotlib.figure import Figure

from experiments.shown import Rows, logits_of, show_overlay
from experiments.study import Arrays, Found, Run, Study
from experiments.tables import Row, Table
from torchsite.data import Dataset, to_float
from torchsite.model.drawing import new_figure, show_heatmap, show_picture
from torchsite.results import Result
from torchsite.shapes import Logits

N_SHOWN = 5
N_CONFUSIONS = 10


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


def explained_mistakes(run: Run) -> Found:
    """The most confident mistakes, no two of one true class, explained; and the commonest confusions."""
    site, data = run.pair.site, run.pair.test
    logits = logits_of(site, data)
    chosen = confident_mistakes(logits, data)
    images, true = to_float(data.images[chosen]), data.labels[chosen]
    explanation = site.explain(images)
    predicted = explanation.predicted
    mistakes: list[Row] = [
        {
            "row": int(chosen[i]),
            "class": data.classes[int(true[i])],
            "predicted": data.classes[int(predicted[i])],
            "probability": float(explanation.probabilities[i, predicted[i]]),
            "logit of the class": float(explanation.logits[i, true[i]]),
            "logit of the predicted": float(explanation.logits[i, predicted[i]]),
        }
        for i in range(len(chosen))
    ]
    arrays = {
        "images": images,
        "true_maps": explanation.heatmaps(classes=true),
        "predicted_maps": explanation.heatmaps(classes=predicted),
        "why": explanation.contrast(true, predicted),
    }
    n_wrong = int((logits.argmax(1) != data.labels).sum())
    counted = {"n_wrong": n_wrong, "n_images": len(data), "confusions": confusions(logits, data)}
    return Found({"pictures": mistakes, **counted}, arrays, run.pair.description())


def draw_mistakes(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """Mistakes: the picture, evidence for the true and for the predicted class, and the difference."""
    mistakes: list[Row] = result.values["pictures"]
    if not mistakes:
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


def difference(mistake: Row) -> float:
    """How much more the model finds for the true class than for the predicted one: less than 0."""
    return mistake["logit of the class"] - mistake["logit of the predicted"]


COMMON = Table(
    {
        "class": lambda one: one["class"],
        "seen as": lambda one: one["predicted"],
        "pictures": lambda one: str(one["n"]),
    },
    of=lambda result: result.values["confusions"],
    names={},
)
CONFIDENT = Table(
    {
        "picture": lambda one: str(one["row"]),
        "class": lambda one: one["class"],
        "seen as": lambda one: one["predicted"],
        "probability": lambda one: f"{one['probability']:.3f}",
        "difference": lambda one: f"{difference(one):.2f}",
    },
    lambda _: (
        "The most confident ones, no two of one class; the difference of the logits is the sum of "
        "`why(class, seen as)`:\n\n"
    ),
    of=lambda result: result.values["pictures"],
    names={},
)
SHEET = "Mistakes: evidence for the class, for what was seen, and the difference"
STUDY = Study(
    "{}_failures",
    "## {}: failure cases",
    [COMMON, CONFIDENT],
    find=explained_mistakes,
    words=lambda result: (
        f"{result.values['n_wrong']:,} of {result.values['n_images']:,} pictures are classified wrongly. "
        "The commonest mistakes:\n\n"
    ),
    show=draw_mistakes,
    sheets=lambda result: {result.name: SHEET} if result.values["pictures"] else {},
)
