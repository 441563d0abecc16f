"""One picture, every explanation of it, as it is and moved: the comparison sheet (the paper's Figure 4).

Claim:    SITE's own explanation is the same before and after the transform; post-hoc maps of the same model
          are disturbed.
Command:  torchsite reproduce cifar10_sheet   (or mnist_sheet)
Cost:     two pictures in two poses, all methods on both models; a minute. With --quick, one digit.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchsite.attribution import METHODS
from torchsite.data import to_float
from torchsite.errors import NotApplicableError
from torchsite.evaluation.methods import applies, options_of
from torchsite.metrics import as_explainer
from torchsite.metrics.carried import carry_and_renew
from torchsite.paper.models import Pair, pair_beside
from torchsite.paper.shown import Rows, first_right, keep, pose_of, predictions, preferred
from torchsite.results import Result

SHOWN: Mapping[str, Sequence[str]] = {"cifar10": ("ship", "horse")}


def run(
    recipe: str,
    folder: Path,
    *,
    methods: Sequence[str] | None = None,
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Explain a correctly classified picture of two classes with every method on both models."""
    started = time.monotonic()
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    classes = preferred(pair.test, SHOWN.get(recipe, ()))
    rows = first_right(predictions(pair.site, pair.test), pair.test, classes, 1)[: 1 if quick else 2]
    lines, arrays = explained_by_all(pair, rows, list(METHODS) if methods is None else methods)
    labels = pair.test.labels[rows].tolist()
    pictures = [
        {"row": int(row), "class": pair.test.classes[label]} for row, label in zip(rows, labels, strict=True)
    ]
    config = pair.description() | {"recipe": recipe, "quick": quick}
    values = {"pictures": pictures, "lines": lines}
    return keep(f"{recipe}_sheet", folder, values, config, arrays, time.monotonic() - started)


def explained_by_all(
    pair: Pair, rows: Rows, methods: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """For each model and method: its maps I(x), I(T x), T(I(x)), or the reason why there are none."""
    images, transform = to_float(pair.test.images[rows]), pose_of(pair.site, rows)
    arrays, lines = {"images": images, "moved": transform(images)}, []
    for kind, model in pair:
        with torch.no_grad():
            classes = model.eval()(images).argmax(1)
        for method in [name for name in methods if applies(name, model)]:
            line: dict[str, Any] = {"model": kind, "method": method}
            try:
                explain = as_explainer(METHODS[method](model, **options_of(method, model)), model)
                both = carry_and_renew(explain, images, classes, transform)
            except NotApplicableError as error:
                lines.append(line | {"reason": str(error)})
                continue
            arrays[f"{kind}.{method}"] = torch.stack([both.untouched, both.renewed, both.carried], dim=1)
            lines.append(line | {"self-consistency": both.raw.tolist()})
    return lines, arrays
