"""The two comparison sheets of the appendix: one picture, every method, the object and the scene model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchsite.attribution import METHODS
from torchsite.data import BamDataset, to_float
from torchsite.errors import NotApplicableError
from torchsite.metrics import Poses, as_explainer
from torchsite.paper.arrays import save_arrays
from torchsite.paper.bam.measures import LABELLINGS, MODELS, Models, options_of

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


def keep_sheet(
    models: Mapping[str, Models], test: BamDataset, methods: Sequence[str], path: Path
) -> dict[str, Any]:
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
            model = getattr(models[kind], f"{by}s")
            try:
                explain = as_explainer(METHODS[method](model, **options_of(method, model)), model)
                maps = torch.cat([explain(image, label), explain(moved, label)])
            except NotApplicableError:
                continue
            arrays[f"{by}.{method}"] = maps
            shown.append(method)
    save_arrays(path, arrays)
    return {
        "row": row,
        "object": test.object_classes[int(test.object_labels[row])],
        "scene": test.scene_classes[int(test.scene_labels[row])],
        "methods": list(dict.fromkeys(shown)),
    }


def first_named_by_all(models: Mapping[str, Models], test: BamDataset, most: int = 500) -> int:
    """The first picture whose object and scene every model names; the first of all if there is none."""
    for start in range(0, min(most, len(test)), 50):
        part = test[start : start + 50]
        images = to_float(part.images)
        with torch.no_grad():
            right = torch.stack(
                [
                    getattr(models[kind], f"{by}s").eval()(images).argmax(1) == getattr(part, f"{by}_labels")
                    for kind in MODELS
                    for by in LABELLINGS
                ]
            ).all(0)
        if bool(right.any()):
            return start + int(right.nonzero()[0, 0])
    return 0
