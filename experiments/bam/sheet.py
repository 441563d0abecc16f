"""The two comparison sheets of the appendix: one picture, every method, the object and the scene model."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from experiments.bam.dataset import BamDataset
from experiments.bam.models import LABELLINGS, Models
from experiments.bam.pairs import POSES, options_of
from experiments.models import KINDS
from experiments.study import Arrays
from torchsite.attribution import METHODS
from torchsite.data import to_float
from torchsite.errors import NotApplicableError
from torchsite.metrics import Poses, as_explainer
from torchsite.model.drawing import new_figure, show_heatmap, show_picture
from torchsite.report.format import method_name
from torchsite.results import Result

# The paper's sheets, in its order; the first is SITE's own.
SHEET = (
    "self_explanation",
    "grad_cam",
    "guided_backprop",
    "excitation_backprop",
    "deconvnet",
    "linear_approximation",
    "gradient",
    "rise",
    "extremal_perturbation",
)


COLUMNS = 5


Sheet = dict[str, Any]  # which picture stands on the sheets, what it is named, the methods that apply


def make_sheet(
    models: Mapping[str, Models], test: BamDataset, methods: Sequence[str]
) -> tuple[Sheet, dict[str, Tensor]]:
    """One picture that all four models name correctly, explained by every method, as it is and moved.

    SITE's own maps come from SITE, the others from the black box, as in the paper. Moved, the picture of the
    object model and that of the scene model are turned and shifted each in its own way.
    """
    row = first_named_by_all(models, test)
    image = to_float(test.images[row : row + 1])
    arrays: dict[str, Tensor] = {"image": image, "region": test.regions[row : row + 1]}
    shown: list[str] = []
    for number, by in enumerate(LABELLINGS):
        moved = Poses(models["site"].objects.config.family, 2).of(torch.tensor([row]), number)(image)
        arrays[f"moved.{by}"] = moved
        label = getattr(test, f"{by}_labels")[row : row + 1]
        for method in methods:
            kind = "site" if method == "self_explanation" else "black_box"
            model = models[kind].by(by)
            try:
                explain = as_explainer(METHODS[method](model, **options_of(method, model)), model)
                maps = torch.cat([explain(image, label), explain(moved, label)])
            except NotApplicableError:
                continue
            arrays[f"{by}.{method}"] = maps
            shown.append(method)
    sheet: Sheet = {
        "row": row,
        "object": test.object_classes[int(test.object_labels[row])],
        "scene": test.scene_classes[int(test.scene_labels[row])],
        "methods": list(dict.fromkeys(shown)),
    }
    return sheet, arrays


def first_named_by_all(models: Mapping[str, Models], test: BamDataset, most: int = 500) -> int:
    """The first picture whose object and scene every model names; the first of all if there is none."""
    for start in range(0, min(most, len(test)), 50):
        part = test[start : start + 50]
        images = to_float(part.images)
        with torch.no_grad():
            right = torch.stack(
                [
                    models[kind].by(by).eval()(images).argmax(1) == getattr(part, f"{by}_labels")
                    for kind in KINDS
                    for by in LABELLINGS
                ]
            ).all(0)
        if bool(right.any()):
            return start + int(right.nonzero()[0, 0])
    return 0


def draw_sheets(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """The paper's two sheets: one picture as it is, and moved, for the object model and the scene model."""
    return {f"{result.name}-{pose}": _draw(result.values["sheet"], arrays, i) for i, pose in enumerate(POSES)}


def _draw(sheet: Sheet, arrays: Arrays, pose: int) -> Figure:
    """Rows of five, for objects and for scenes by turns; the picture stands before SITE's own map."""
    cells = ["picture", *sheet["methods"]]
    n_blocks = -(-len(cells) // COLUMNS)
    figure, grid = new_figure(2 * n_blocks, COLUMNS, 1.25)
    for place, cell in enumerate(cells):
        block, column = divmod(place, COLUMNS)
        for offset, (by, named) in enumerate((("object", sheet["object"]), ("scene", sheet["scene"]))):
            axes = grid[2 * block + offset][column]
            if cell == "picture":
                image = arrays["image"] if pose == 0 else arrays[f"moved.{by}"]
                show_picture(axes, image[0], f"{by}: {named.replace('_', ' ')}")
            elif f"{by}.{cell}" in arrays:
                show_heatmap(axes, arrays[f"{by}.{cell}"][pose], f"{by}, {method_name(cell)}")
    return figure
