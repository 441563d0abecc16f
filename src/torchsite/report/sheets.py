"""Sheets of pictures and their maps, and whether the maps move with the picture.

Everything is drawn from the result of `examine` and the arrays of `illustrate`; no model runs. Red is
evidence for a class, blue against it. Maps that are only compared in shape, as the cosine does, have a scale
each; the evidence of one picture has one scale.
"""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from torchsite.evaluation.illustrate import N_SAMPLES, Illustrations, LabelMaps
from torchsite.model.drawing import draw_explanation, new_figure, show_heatmap, show_picture
from torchsite.report.charts import classes, words
from torchsite.results import Result

MOST_CLASSES = 10  # of a sheet of all classes


def draw_samples(shown: Illustrations, result: Result) -> Figure:
    """The first pictures of each class, a row for each."""
    figure, grid = new_figure(len(shown.samples), N_SAMPLES, 0.62)
    for row, pictures, name in zip(grid, shown.samples, classes(result), strict=False):
        for axes, picture in zip(row, pictures, strict=False):
            show_picture(axes, picture)
        _name_row(row[0], name)
    return figure


def draw_moving(shown: Illustrations, result: Result) -> Figure:
    """One picture of each class, moved: the explanation carried along, T(I x), beside the new one, I(T x).

    The number above I(T x) is the cosine of the two inside the frame, this picture's raw self-consistency.
    """
    images, moved, maps = shown.moving
    names = [classes(result)[entry["predicted"]] for entry in result.values["examples"]]
    figure, grid = new_figure(len(images), 2 + 3 * len(maps), 0.78)
    for i, row in enumerate(grid):
        show_picture(row[0], images[i], "x" if i == 0 else "")
        show_picture(row[1], moved[i], "T x" if i == 0 else "")
        _name_row(row[0], names[i])
    for k, (method, both) in enumerate(maps.items()):
        scores = both.raw
        for i, row in enumerate(grid):
            first, second, third = row[2 + 3 * k : 5 + 3 * k]
            show_heatmap(first, both.untouched[i], f"{words(method)}\nI(x)" if i == 0 else "")
            show_heatmap(second, both.carried[i], "T(I x)" if i == 0 else "")
            show_heatmap(third, both.renewed[i], f"{'I(T x)  ' if i == 0 else ''}{float(scores[i]):.2f}")
    return figure


def draw_turning(shown: Illustrations) -> Figure:
    """One picture turned step by step: the explanation of each pose below the turned explanation."""
    angles, (_, turned, maps) = shown.angles, shown.turning
    figure, grid = new_figure(1 + 2 * len(maps), len(angles), 0.95)
    figure.set_figwidth(figure.get_figwidth() + 1.0)  # room for the names of the rows
    for column, axes in enumerate(grid[0]):
        show_picture(axes, turned[column], f"{angles[column]:.0f}°")
    for k, (method, both) in enumerate(maps.items()):
        above, below = grid[1 + 2 * k], grid[2 + 2 * k]
        _name_row(above[0], f"{words(method)}\nT(I x)")
        _name_row(below[0], "I(T x)")
        for column in range(len(angles)):
            show_heatmap(above[column], both.carried[column])
            show_heatmap(below[column], both.renewed[column])
    return figure


def draw_classes(shown: Illustrations) -> Figure:
    """The paper's sheet: a few pictures with the prototype (above) and the evidence (below) of each class."""
    assert shown.classes is not None
    return draw_explanation(shown.classes, range(len(shown.classes)), MOST_CLASSES, panel=0.72)


def draw_mistakes(shown: Illustrations, result: Result, pose: str = "untransformed") -> Figure:
    """The most confident errors: picture, evidence for both classes, and why one rather than the other."""
    images, maps = shown.mistakes[pose]
    entries, names = result.values["mistakes"][pose], classes(result)
    if maps is None:
        figure, grid = new_figure(1, len(entries), 1.1)
        for axes, image, entry in zip(grid[0], images, entries, strict=True):
            said = f"{names[entry['label']]}, called {names[entry['predicted']]}"
            show_picture(axes, image, f"{said}\n{entry['confidence']:.0%} sure")
        return figure
    across = min(2, len(entries))
    figure, grid = new_figure(math.ceil(len(entries) / across), 4 * across, 1.15)
    places = [row[start : start + 4] for row in grid for start in range(0, 4 * across, 4)]
    for row, entry, image, true, said, why in zip(places, entries, images, *maps, strict=False):
        right, wrong = names[entry["label"]], names[entry["predicted"]]
        limit = float(torch.stack([true, said]).abs().max())
        show_picture(row[0], image, f"{right}, called {wrong} ({entry['confidence']:.0%})")
        show_heatmap(row[1], true, f"true, {right}: Σ {float(true.sum()):.1f}", limit)
        show_heatmap(row[2], said, f"said, {wrong}: Σ {float(said.sum()):.1f}", limit)
        show_heatmap(row[3], why, f"why {right}, not {wrong}: Σ {float(why.sum()):.1f}", limit)
    return figure


def draw_label_examples(result: Result, shown: LabelMaps) -> Figure:
    """A picture of each label, its map, and both in a pose."""
    entries, names = result.values["examples"][: len(shown.images)], classes(result)
    figure, grid = new_figure(len(entries), 4, 1.1)
    assert shown.maps is not None
    assert shown.moved_maps is not None
    for row, entry, image, heatmap, moved, moved_map in zip(
        grid, entries, shown.images, shown.maps, shown.moved, shown.moved_maps, strict=True
    ):
        show_picture(row[0], image, f"{names[entry['label']]}, {entry['probability']:.0%}")
        show_heatmap(row[1], heatmap, f"Σ {float(heatmap.sum()):.1f}")
        show_picture(row[2], moved, "moved")
        show_heatmap(row[3], moved_map, f"Σ {float(moved_map.sum()):.1f}")
    return figure


def draw_label_mistakes(result: Result, shown: LabelMaps) -> Figure:
    """The pictures of wrong answers, and the maps of the labels that were wrongly named or missed."""
    entries, names = result.values["mistakes"], classes(result)
    across = 2 if shown.maps is not None else 1
    figure, grid = new_figure(-(-len(entries) // 2), 2 * across, 1.15)
    places = [row[start : start + across] for row in grid for start in (0, across)]
    for number, (place, entry) in enumerate(zip(places, entries, strict=False)):
        said = "missed" if entry["true"] else "wrongly named"
        title = f"{names[entry['label']]} {said} ({entry['probability']:.0%})"
        show_picture(place[0], shown.images[number], title)
        if shown.maps is not None:
            show_heatmap(place[1], shown.maps[number], f"Σ {float(shown.maps[number].sum()):.1f}")
    return figure


def _name_row(axes: Axes, name: str) -> None:
    axes.text(-0.08, 0.5, name, transform=axes.transAxes, ha="right", va="center", fontsize=7)
