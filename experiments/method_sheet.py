"""One picture, every explanation of it, as it is and moved: the comparison sheet (the paper's Figure 4).

Claim:    SITE's own explanation is the same before and after the transform; post-hoc maps of the same model
          are disturbed.
Command:  torchsite reproduce cifar10_sheet   (or mnist_sheet)
Cost:     two pictures in two poses, all methods on both models; a minute. With --quick, one digit.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from experiments.cache import save_result
from experiments.models import KINDS, Pair, pair_beside
from experiments.registry import Arrays
from experiments.section import Pictures, head
from experiments.shown import Rows, first_right, pose_of, predictions, preferred
from experiments.tables import NAMES, Row, on_model, own_first
from torchsite.attribution import METHODS
from torchsite.data import to_float
from torchsite.errors import NotApplicableError
from torchsite.evaluation.methods import applies, options_of
from torchsite.metrics import as_explainer
from torchsite.metrics.carried import carry_and_renew
from torchsite.model.drawing import new_figure, show_heatmap, show_picture
from torchsite.report.format import markdown_table, method_name
from torchsite.results import Result

SHOWN: Mapping[str, Sequence[str]] = {"cifar10": ("ship", "horse")}
POSES = ("I(x)", "I(T x)", "T(I(x))")


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
    result = Result(f"{recipe}_sheet", values, config, 0, time.monotonic() - started)
    return save_result(result, folder, arrays)


def explained_by_all(pair: Pair, rows: Rows, methods: Sequence[str]) -> tuple[list[Row], dict[str, Tensor]]:
    """For each model and method: its maps I(x), I(T x), T(I(x)), or the reason why there are none."""
    images, transform = to_float(pair.test.images[rows]), pose_of(pair.site, rows)
    arrays = {"images": images, "moved": transform(images)}
    lines: list[Row] = []
    for kind, model in pair:
        with torch.no_grad():
            classes = model.eval()(images).argmax(1)
        for method in [name for name in methods if applies(name, model)]:
            try:
                explain = as_explainer(METHODS[method](model, **options_of(method, model)), model)
                both = carry_and_renew(explain, images, classes, transform)
            except NotApplicableError as error:
                lines.append({"model": kind, "method": method, "reason": str(error)})
                continue
            arrays[f"{kind}.{method}"] = torch.stack([both.untouched, both.renewed, both.carried], dim=1)
            lines.append({"model": kind, "method": method, "self-consistency": both.raw.tolist()})
    return lines, arrays


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """A sheet per picture: for each method I(x), I(T x) and T(I(x)), on SITE and the black box."""
    if not arrays:
        return {}
    methods = list(dict.fromkeys(line["method"] for line in _lines(result)))
    pictures = range(len(result.values["pictures"]))
    return {f"{result.name}-{number + 1}": _sheet(number, methods, arrays) for number in pictures}


def section(result: Result, pictures: Pictures) -> str:
    """How well each method's map of the pictures shown survives the move."""
    shown: list[Row] = result.values["pictures"]
    rows = [
        [*(name(line) for name in NAMES.values()), *(f"{cosine:.3f}" for cosine in line["self-consistency"])]
        for line in _lines(result)
    ]
    title = "Every explanation of one picture, as it is, moved, and carried along"
    return (
        head(result, "all explanations of a picture (Figure 4)")
        + "The cosine between I(T x) and T(I(x)) for the pictures of the sheet.\n\n"
        + markdown_table([*NAMES, *(picture["class"] for picture in shown)], rows)
        + pictures.sheet(f"{result.name}-1", title)
    )


def _lines(result: Result) -> list[Row]:
    """The methods that apply, the model's own before all others."""
    lines: list[Row] = result.values["lines"]
    return own_first([line for line in lines if "reason" not in line])


def _sheet(number: int, methods: Sequence[str], arrays: Arrays) -> Figure:
    """One picture above, a row for each method below, a block of three columns for each model."""
    first = {kind: found[0] for kind in KINDS if (found := [m for m in methods if f"{kind}.{m}" in arrays])}
    figure, grid = new_figure(len(methods) + 1, 3 * len(first) + 1, 0.95)
    show_picture(grid[0][1], arrays["images"][number], "x")
    show_picture(grid[0][2], arrays["moved"][number], "T x")
    for row, method in enumerate(methods, start=1):
        grid[row][0].text(0.98, 0.5, method_name(method), ha="right", va="center", fontsize=7)
        for block, kind in enumerate(first):
            maps = arrays.get(f"{kind}.{method}")
            for pose, title in enumerate(POSES if maps is not None else ()):
                assert maps is not None
                label = f"{title}\n{on_model(kind)}" if method == first[kind] else ""
                show_heatmap(grid[row][1 + 3 * block + pose], maps[number, pose], label)
    return figure
