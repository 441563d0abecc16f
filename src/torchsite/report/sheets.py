"""Sheets of pictures: what a model saw, its reasons, and whether they move with the picture.

Every function takes the model, the data that was examined and the result of `examine`, and returns a
matplotlib figure. Red speaks for a class and blue against it. Maps that are only compared in shape, as
the cosine does, have a scale each; the evidence of one picture has one scale.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from torchsite.attribution import METHODS
from torchsite.data import Dataset, to_float
from torchsite.errors import NotApplicableError
from torchsite.evaluation.examine import method_options
from torchsite.metrics import Poses
from torchsite.metrics.carried import carry_and_renew
from torchsite.model import SITE, BlackBox
from torchsite.model.drawing import draw_sheet, new_figure, show_heatmap, show_picture
from torchsite.report.charts import words
from torchsite.results import Result
from torchsite.shapes import Heatmaps, Images, Labels
from torchsite.transforms import AffineTransform, Transform, TransformFamily

Explain = Callable[[Images, Labels], Heatmaps]
MOST_ROWS = 10
MOST_CLASSES = 10  # of a sheet of all classes
BESIDE = ("gradient", "grad_cam")  # shown beside SITE's own, or alone on a black box


def draw_samples(data: Dataset, n: int = 10, n_classes: int = MOST_ROWS) -> Figure:
    """The first pictures of each class, a row for each."""
    labels = list(range(min(len(data.classes), n_classes)))
    figure, grid = new_figure(len(labels), n, 0.62)
    for row, label in zip(grid, labels, strict=True):
        found = (data.labels == label).nonzero()[:n, 0]
        for axes, picture in zip(row, to_float(data.images[found]), strict=False):
            show_picture(axes, picture)
        _name_row(row[0], data.classes[label])
    return figure


def draw_moving(model: SITE | BlackBox, data: Dataset, result: Result) -> Figure:
    """One picture of each class, moved: the explanation carried along, T(I x), beside the new one, I(T x).

    The number above I(T x) is the cosine of the two inside the frame, this picture's raw self-consistency.
    """
    shown = result.values["examples"][:MOST_ROWS]
    images, labels = pictures(data, shown), predicted(shown)
    transform = pose_of(result, shown)
    moved = transform(images)
    explainers = explainers_of(model, images, labels)
    figure, grid = new_figure(len(shown), 2 + 3 * len(explainers), 0.78)
    for i, row in enumerate(grid):
        show_picture(row[0], images[i], "x" if i == 0 else "")
        show_picture(row[1], moved[i], "T x" if i == 0 else "")
        _name_row(row[0], data.classes[int(labels[i])])
    for k, (name, explain) in enumerate(explainers.items()):
        both = carry_and_renew(explain, images, labels, transform)
        scores = both.raw
        for i, row in enumerate(grid):
            first, second, third = row[2 + 3 * k : 5 + 3 * k]
            show_heatmap(first, both.untouched[i], f"{words(name)}\nI(x)" if i == 0 else "")
            show_heatmap(second, both.carried[i], "T(I x)" if i == 0 else "")
            show_heatmap(third, both.renewed[i], f"{'I(T x)  ' if i == 0 else ''}{float(scores[i]):.2f}")
    return figure


def draw_turning(model: SITE | BlackBox, data: Dataset, result: Result, n_angles: int = 7) -> Figure:
    """One picture turned step by step: the explanation of each pose below the turned explanation."""
    shown = result.values["examples"][:1]
    reach = TransformFamily.from_mapping(result.config["family"]).max_rotation or 90.0
    angles = torch.linspace(-reach, reach, n_angles, dtype=torch.float64)
    turns = AffineTransform.rotation(angles)
    images, labels = pictures(data, shown).repeat(n_angles, 1, 1, 1), predicted(shown).repeat(n_angles)
    explainers = explainers_of(model, images, labels)
    figure, grid = new_figure(1 + 2 * len(explainers), n_angles, 0.95)
    figure.set_figwidth(figure.get_figwidth() + 1.0)  # room for the names of the rows
    turned = turns(images)
    for column, axes in enumerate(grid[0]):
        show_picture(axes, turned[column], f"{angles[column]:.0f}°")
    for k, (name, explain) in enumerate(explainers.items()):
        above, below = grid[1 + 2 * k], grid[2 + 2 * k]
        both = carry_and_renew(explain, images, labels, turns)
        _name_row(above[0], f"{words(name)}\nT(I x)")
        _name_row(below[0], "I(T x)")
        for column in range(n_angles):
            show_heatmap(above[column], both.carried[column])
            show_heatmap(below[column], both.renewed[column])
    return figure


def draw_classes(model: SITE, data: Dataset, result: Result, n: int = 4) -> Figure:
    """The paper's sheet: a few pictures with the prototype (above) and the evidence (below) of each class."""
    images = pictures(data, result.values["examples"][:n])
    return draw_sheet(images, model.explain(images), n_classes=MOST_CLASSES)


def draw_mistakes(
    model: SITE | BlackBox, data: Dataset, result: Result, pose: str = "untransformed"
) -> Figure:
    """The most confident errors: picture, evidence for both classes, and why one rather than the other."""
    shown = result.values["mistakes"][pose]
    images, labels = pictures(data, shown), torch.tensor([entry["label"] for entry in shown])
    if pose == "transformed":
        images = pose_of(result, shown)(images)
    said, names = predicted(shown), data.classes
    if not isinstance(model, SITE):
        figure, grid = new_figure(1, len(shown), 1.1)
        for i, axes in enumerate(grid[0]):
            title = (
                f"{names[int(labels[i])]}, called {names[int(said[i])]}\n{shown[i]['confidence']:.0%} sure"
            )
            show_picture(axes, images[i], title)
        return figure
    explanation = model.explain(images)
    true_maps, said_maps = explanation.heatmaps(classes=labels), explanation.heatmaps(classes=said)
    why = explanation.why(labels, said)
    across = min(2, len(shown))
    figure, grid = new_figure(math.ceil(len(shown) / across), 4 * across, 1.15)
    places = [row[start : start + 4] for row in grid for start in range(0, 4 * across, 4)]
    for i, row in enumerate(places[: len(shown)]):
        true, wrong = names[int(labels[i])], names[int(said[i])]
        limit = float(torch.stack([true_maps[i], said_maps[i]]).abs().max())
        show_picture(row[0], images[i], f"{true}, called {wrong} ({shown[i]['confidence']:.0%})")
        show_heatmap(row[1], true_maps[i], f"true, {true}: Σ {float(true_maps[i].sum()):.1f}", limit)
        show_heatmap(row[2], said_maps[i], f"said, {wrong}: Σ {float(said_maps[i].sum()):.1f}", limit)
        show_heatmap(row[3], why[i], f"why {true}, not {wrong}: Σ {float(why[i].sum()):.1f}", limit)
    return figure


def explainers_of(model: SITE | BlackBox, images: Images, labels: Labels) -> dict[str, Explain]:
    """The model's own explanation, where it has one, and those of BESIDE that apply to it."""
    found: dict[str, Explain] = (
        {"self_explanation": METHODS["self_explanation"](model)} if isinstance(model, SITE) else {}
    )
    for name in BESIDE:
        try:
            method = METHODS[name](model, **method_options(name, model))
            method(images[:1], labels[:1])
        except NotApplicableError:
            continue
        found[name] = method
    return found


def pictures(data: Dataset, shown: list[Mapping[str, Any]]) -> Images:
    """The pictures that entries of a result name, in [0, 1]."""
    return to_float(data.images[torch.tensor([entry["row"] for entry in shown], dtype=torch.long)])


def predicted(shown: list[Mapping[str, Any]]) -> Labels:
    """What the model said."""
    return torch.tensor([entry["predicted"] for entry in shown], dtype=torch.long)


def pose_of(result: Result, shown: list[Mapping[str, Any]]) -> Transform:
    """The first pose of each picture, as it was measured."""
    family = TransformFamily.from_mapping(result.config["family"])
    positions = torch.tensor([entry["position"] for entry in shown], dtype=torch.long)
    return Poses(family, result.config["n_transforms"], result.seed).of(positions, 0)


def _name_row(axes: Axes, name: str) -> None:
    axes.text(-0.08, 0.5, name, transform=axes.transAxes, ha="right", va="center", fontsize=7)
