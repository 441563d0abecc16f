"""One picture, every explanation of it, as it is and moved: the comparison sheet (the paper's Figure 4).

Claim:    SITE's own explanation is the same before and after the transform; post-hoc maps of the same model
          are disturbed.
Command:  torchsite reproduce cifar10_sheet   (or mnist_sheet)
Cost:     two pictures in two poses, all methods on both models; a minute. With --quick, one digit.
"""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure

from experiments.measuring import explainers
from experiments.models import KINDS
from experiments.section import Pictures
from experiments.shown import first_right, pose_of, predictions, preferred
from experiments.study import Arrays, Found, Run, Study
from experiments.tables import NAMES, Row, on_model, own_first
from torchsite.attribution import METHODS
from torchsite.data import to_float
from torchsite.errors import NotApplicableError
from torchsite.metrics import as_explainer
from torchsite.metrics.carried import carry_and_renew
from torchsite.model.drawing import new_figure, show_heatmap, show_picture
from torchsite.report.format import markdown_table, method_name
from torchsite.results import Result

SHOWN: Mapping[str, Sequence[str]] = {"cifar10": ("ship", "horse")}
POSES = ("I(x)", "I(T x)", "T(I(x))")
WORDS = "The cosine between I(T x) and T(I(x)) for the pictures of the sheet.\n\n"


def find(run: Run) -> Found:
    """A correctly classified picture of two classes, explained with every method on both models.

    The arrays are I(x), I(T x), T(I(x)) of each method that applies; the others have a reason.
    """
    site, test = run.pair.site, run.pair.test
    classes = preferred(test, SHOWN.get(run.recipe, ()))
    chosen = first_right(predictions(site, test), test, classes, 1)[: 1 if run.quick else 2]
    images, transform = to_float(test.images[chosen]), pose_of(site, chosen)
    arrays, lines = {"images": images, "moved": transform(images)}, list[Row]()
    for kind, model in run.pair:
        with torch.no_grad():
            seen_as = model.eval()(images).argmax(1)
        for one in explainers(model, run.methods):
            line = {"model": kind, "method": one.name}
            try:
                both = carry_and_renew(as_explainer(one.on(model), model), images, seen_as, transform)
            except NotApplicableError as error:
                lines.append(line | {"reason": str(error)})
                continue
            arrays[f"{kind}.{one.name}"] = torch.stack([both.untouched, both.renewed, both.carried], dim=1)
            lines.append(line | {"self-consistency": both.raw.tolist()})
    pictures = [{"row": int(row), "class": test.classes[int(test.labels[row])]} for row in chosen]
    return Found({"pictures": pictures, "lines": lines}, arrays, run.pair.description())


def text(result: Result, pictures: Pictures) -> str:
    """How well each method's map of the pictures shown survives the move."""
    rows = [
        [*(name(line) for name in NAMES.values()), *(f"{cosine:.3f}" for cosine in line["self-consistency"])]
        for line in lines(result)
    ]
    table = markdown_table([*NAMES, *(picture["class"] for picture in result.values["pictures"])], rows)
    return WORDS + table + pictures.sheet(f"{result.name}-1", SHEET)


def lines(result: Result) -> list[Row]:
    """The methods that apply, the model's own before all others."""
    return own_first([line for line in result.values["lines"] if "reason" not in line])


def draw_sheets(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """A sheet per picture: for each method I(x), I(T x) and T(I(x)), on SITE and the black box."""
    methods = list(dict.fromkeys(line["method"] for line in lines(result)))
    pictures = range(len(result.values["pictures"]))
    return {f"{result.name}-{number + 1}": _sheet(number, methods, arrays) for number in pictures}


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


SHEET = "Every explanation of one picture, as it is, moved, and carried along"
STUDY = Study(
    "{}_sheet",
    "## {}: all explanations of a picture (Figure 4)",
    methods=tuple(METHODS),
    find=find,
    text=text,
    show=draw_sheets,
)
