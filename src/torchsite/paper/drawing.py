"""The paper's figures, drawn from the results of their experiments and the arrays beside them.

`save_paper_figures(result, folder)` writes what an experiment's result can show as PNG files into the folder.
Heatmaps are drawn on scales of their own, symmetric about zero: red speaks for the class, blue against it.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from torchsite.data import CATALOGUE
from torchsite.files import write_atomically
from torchsite.model.drawing import COLOURS, new_figure, png, prototype_pictures, show_heatmap, show_picture
from torchsite.paper.arrays import load_arrays
from torchsite.paper.bam.section import draw_bam_sheets
from torchsite.paper.curves import draw_consistency, draw_mask_k
from torchsite.paper.names import PUBLIC, method_name, on_model, own_first
from torchsite.results import Result

Arrays = Mapping[str, Tensor]
Figures = dict[str, Figure]


def save_paper_figures(result: Result, folder: Path) -> list[Path]:
    """Draw what this result shows into its folder; results that are tables only give no figures."""
    path = folder / f"{result.name}.npz"
    return _saved(paper_figures(result, load_arrays(path) if path.exists() else {}), folder)


def save_public_figures(result: Result, arrays_in: Path, folder: Path) -> list[Path]:
    """Draw for the documentation: digits may be shown, the photographs of CIFAR-10 may not."""
    path = arrays_in / f"{result.name}.npz"
    shown = result.name.startswith(PUBLIC) and path.exists()
    figures = paper_figures(result, load_arrays(path) if shown else {})
    return _saved({f"results-{name}": figure for name, figure in figures.items()}, folder)


def paper_figures(result: Result, arrays: Arrays) -> Figures:
    """The figures of a result, by name; those that show pictures only if there are arrays."""
    for ending, draw in OF_PICTURES.items():
        if result.name.endswith(ending):
            return draw(result, arrays) if arrays else {}
    for ending, draw in OF_FIGURES.items():
        if result.name.endswith(ending):
            return draw(result, arrays)
    return {}


def _saved(figures: Figures, folder: Path) -> list[Path]:
    return [write_atomically(folder / f"{name}.png", png(figure, 120)) for name, figure in figures.items()]


def draw_explanations(result: Result, arrays: Arrays) -> Figures:
    """Figure 3: pictures as they are and moved, their explanations laid over them."""
    return {result.name: _two_poses(result.values["pictures"], arrays)}


def draw_examples(result: Result, arrays: Arrays) -> Figures:
    """The appendix: one sheet for every class that has pictures."""
    pictures = result.values["pictures"]
    figures = {}
    for label in dict.fromkeys(picture["class"] for picture in pictures):
        rows = [i for i, picture in enumerate(pictures) if picture["class"] == label]
        part = {name: array[rows] for name, array in arrays.items()}
        figures[f"{result.name}-{label}"] = _two_poses([pictures[i] for i in rows], part)
    return figures


def draw_method_sheet(result: Result, arrays: Arrays) -> Figures:
    """Figure 4, a sheet per picture: for each method I(x), I(T x) and T(I(x)), on SITE and the black box."""
    lines = [line for line in result.values["lines"] if "reason" not in line]
    methods = list(dict.fromkeys(line["method"] for line in own_first(lines)))
    return {
        f"{result.name}-{number + 1}": _method_sheet(number, lines, methods, arrays)
        for number in range(len(result.values["pictures"]))
    }


def draw_failures(result: Result, arrays: Arrays) -> Figures:
    """Mistakes: the picture, evidence for the true and for the predicted class, and the difference."""
    pictures = result.values["pictures"]
    if not pictures:
        return {}
    figure, grid = new_figure(6, len(pictures), 1.25)
    for column, note in enumerate(pictures):
        image = arrays["images"][column]
        true, predicted = arrays["true_maps"][column], arrays["predicted_maps"][column]
        limit = float(max(true.abs().max(), predicted.abs().max()))
        show_picture(grid[0][column], image, f"{note['class']}, seen as {note['predicted']}")
        show_heatmap(grid[1][column], true, f"for {note['class']}: {note['logit of the class']:.1f}", limit)
        _overlay(grid[2][column], image, true)
        total = note["logit of the predicted"]
        show_heatmap(grid[3][column], predicted, f"for {note['predicted']}: {total:.1f}", limit)
        _overlay(grid[4][column], image, predicted)
        gap = note["logit of the class"] - total
        show_heatmap(grid[5][column], arrays["why"][column], f"difference: {gap:.1f}")
    return {result.name: figure}


def _two_poses(notes: Sequence[Mapping[str, Any]], arrays: Arrays) -> Figure:
    """Pictures above, explanations below; each picture beside its moved self."""
    figure, grid = new_figure(2, 2 * len(notes), 1.2)
    for i, note in enumerate(notes):
        as_is, moved = arrays["images"][i], arrays["moved"][i]
        show_picture(grid[0][2 * i], as_is, note["predicted"])
        show_picture(grid[0][2 * i + 1], moved, note["predicted when moved"])
        _overlay(grid[1][2 * i], as_is, arrays["maps"][i])
        _overlay(grid[1][2 * i + 1], moved, arrays["moved_maps"][i], f"cosine {note['self-consistency']:.2f}")
    return figure


def _method_sheet(
    number: int, lines: Sequence[Mapping[str, Any]], methods: Sequence[str], arrays: Arrays
) -> Figure:
    kinds = [kind for kind in ("site", "black_box") if any(line["model"] == kind for line in lines)]
    figure, grid = new_figure(len(methods) + 1, 3 * len(kinds) + 1, 0.95)
    show_picture(grid[0][1], arrays["images"][number], "x")
    show_picture(grid[0][2], arrays["moved"][number], "T x")
    titles = ("I(x)", "I(T x)", "T(I(x))")
    first = {kind: next(m for m in methods if f"{kind}.{m}" in arrays) for kind in kinds}
    for row, method in enumerate(methods, start=1):
        grid[row][0].text(0.98, 0.5, method_name(method), ha="right", va="center", fontsize=7)
        for block, kind in enumerate(kinds):
            maps = arrays.get(f"{kind}.{method}")
            if maps is None:
                continue
            for pose, title in enumerate(titles):
                label = f"{title}\n{on_model(kind)}" if method == first[kind] else ""
                show_heatmap(grid[row][1 + 3 * block + pose], maps[number, pose], label)
    return figure


def _overlay(axes: Axes, image: Tensor, heatmap: Tensor, title: str = "") -> None:
    """A faint grey picture, and over it the map: the stronger the evidence, the less the picture is seen."""
    grey = 0.6 + 0.4 * np.asarray(image.float().mean(0).clamp(0, 1))
    values = np.asarray(heatmap.float())
    bound = float(np.abs(values).max()) or 1.0
    axes.imshow(grey, cmap="gray", vmin=0, vmax=1)
    strength = np.clip(np.abs(values) / bound, 0, 1) ** 0.7
    axes.imshow(values, cmap=COLOURS, vmin=-bound, vmax=bound, alpha=strength)
    axes.set_title(title, fontsize=7, pad=2)


def draw_prototypes(result: Result, arrays: Arrays) -> Figures:
    """What each variant draws for one picture, as it is and moved: the prototypes of all classes."""
    lines = [
        (f"{variant}, {pose}", arrays["pictures"][row], prototype_pictures(arrays[variant][row]))
        for variant in result.values
        for row, pose in enumerate(("as it is", "moved"))
    ]
    classes = CATALOGUE[result.config["recipe"]].classes
    figure, grid = new_figure(len(lines), 1 + len(classes), 0.9)
    for (first, *others), (title, picture, prototypes) in zip(grid, lines, strict=True):
        show_picture(first, picture, title)
        for name, axes, prototype in zip(classes, others, prototypes, strict=True):
            show_picture(axes, prototype, name if axes in grid[0] else "")
    return {result.name: figure}


OF_PICTURES: Mapping[str, Callable[[Result, Arrays], Figures]] = {
    "_explanations": draw_explanations,
    "_photographs": draw_explanations,
    "_sheet": draw_method_sheet,
    "_examples": draw_examples,
    "_failures": draw_failures,
    "bam": draw_bam_sheets,
    "bam_scratch": draw_bam_sheets,
    "bam_photograph": draw_bam_sheets,
    "food10": draw_explanations,
    "targets": draw_prototypes,
    "targets_fashion": draw_prototypes,
    "generators": draw_prototypes,
}
OF_FIGURES: Mapping[str, Callable[[Result, Arrays], Figures]] = {
    "_consistency": lambda result, _: {result.name: draw_consistency(result)},
    "_mask_k": lambda result, arrays: {result.name: draw_mask_k(result, arrays)},
}
