"""Pictures of maps that pass a measure and of maps that fail it: drawn by `draw_metrics.py`.

The pictures are planted: bright bars over dark scenes, named by sums of local terms, so that the true map is
known (`experiments.planted`). It passes; what fails is a map-maker that knows nothing of the model.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

sys.path.append(str(Path(__file__).parents[1]))  # where the experiments are

from experiments.bam import BAM, ObjectMotion
from experiments.bam.object_motion import composed, object_motions
from experiments.planted import COLOURS, OfParts, planted, true_map
from torchsite.data import to_float
from torchsite.metrics import (
    CONTROL_MAPS,
    METRICS,
    Poses,
    as_explainer,
)
from torchsite.metrics.grid_pointing import assembled
from torchsite.metrics.ranking import blanked, least_important_first
from torchsite.transforms import AffineTransform, TransformFamily

PARTS = planted(60)
IMAGES, REGIONS = to_float(PARTS.pictures.images), PARTS.pictures.regions
SCENES, LABELS = to_float(PARTS.pictures.scenes_only), PARTS.pictures.object_labels
POSES = Poses(TransformFamily(), n=1)
ONE = 4  # the picture that is shown
POSE = AffineTransform.pose(30.0, 0.12, -0.08)
HEAT = "magma"

MapOf = Callable[[Tensor, Tensor], Tensor]


def of_truth(model: OfParts = PARTS.objects) -> MapOf:
    """The true map of a planted model."""
    return lambda images, classes: true_map(model, images, classes)


TRUE = of_truth()


def measured(name: str, explain: MapOf, **options: Any) -> Any:
    """What a measure finds of a map-maker on the planted pictures."""
    explainer = as_explainer(explain, PARTS.objects)
    metric = METRICS[name](explainer, poses=POSES, n_classes=len(COLOURS) + 1, n_resamples=0, **options)
    metric.update(IMAGES, LABELS, regions=REGIONS.float())
    return metric.result()


def drawn_patch_deletion() -> Figure:
    """The grid of patches; the true map, and a blob that is right no oftener than for other pictures."""
    figure, axes = _row(3)
    _image(axes[0], IMAGES[ONE], "hide one patch at a time")
    for axis, (verdict, explain) in zip(axes[1:], _pair("centre_blob").items(), strict=True):
        found = measured("patch_deletion", explain)
        _map(axis, explain(*_one())[0], f"{verdict}: {_two(found.correlation)}, floor {_two(found.floor)}")
    for axis in axes:
        for at in (7.5, 15.5, 23.5):
            axis.axhline(at, color="white", lw=0.5)
            axis.axvline(at, color="white", lw=0.5)
    return figure


def drawn_frame_control() -> Figure:
    """A posed picture with black corners, with filled ones, and with nothing in it; two maps of each."""
    one, classes = _one()
    grey = one.mean((-2, -1), keepdim=True).expand_as(one)
    shown = {
        "as it is": one,
        "posed, corners black": POSE(one),
        "posed, corners filled": POSE(one, fill="mean"),
        "posed, grey": POSE(grey),
    }
    figure = Figure(figsize=(7.6, 5.4), layout="constrained")
    grid = figure.subplots(3, 4)
    for axis, (title, images) in zip(grid[0], shown.items(), strict=True):
        _image(axis, images[0], title)
    for row, (verdict, explain) in zip(grid[1:], _pair("frame_template").items(), strict=True):
        found = measured("frame_control", explain)
        titles = (
            verdict,
            "",
            f"filled {_two(found.filled.calibrated)}",
            f"evidence, grey/real {_two(found.evidence.ratio)}",
        )
        top = float(explain(one, classes).abs().max())
        for axis, images, title in zip(row, shown.values(), titles, strict=True):
            _map(axis, explain(images, classes)[0], title, top)
    return figure


def drawn_grid_pointing() -> Figure:
    """A mosaic, and two maps for the class of its first tile."""
    rows = torch.tensor([[0, 3, 1, 5]])
    mosaic = assembled(IMAGES, rows, 2)
    figure, axes = _row(3)
    _image(axes[0], mosaic[0], f"whose evidence for {PARTS.pictures.object_classes[0]}?")
    for axis, (verdict, explain) in zip(axes[1:], _pair("edges").items(), strict=True):
        found = measured("grid_pointing", explain, sides=(2,))
        _map(axis, explain(mosaic, LABELS[rows[0, :1]])[0].clamp_min(0), f"{verdict}: {_two(found.share)}")
    for axis in axes:
        axis.axhline(31.5, color="white", lw=0.8)
        axis.axvline(31.5, color="white", lw=0.8)
    return figure


def drawn_energy_pointing() -> Figure:
    """The object's region; evidence on it, and evidence everywhere."""
    figure, axes = _row(3)
    _image(axes[0], IMAGES[ONE], "the region")
    for axis, (verdict, explain) in zip(axes[1:], _pair("edges").items(), strict=True):
        found = measured("energy_pointing", explain).untransformed
        title = f"{verdict}: {_two(found.share)}, area {_two(found.area)}"
        _map(axis, explain(*_one())[0].clamp_min(0), title)
    for axis in axes:
        axis.contour(REGIONS[ONE], [0.5], colors="white", linewidths=0.8)
    return figure


def drawn_pointing_game() -> Figure:
    """Where two maps have their maximum."""
    figure, axes = _row(3)
    _image(axes[0], IMAGES[ONE], "the region")
    for axis, (verdict, explain) in zip(axes[1:], _pair("random").items(), strict=True):
        found = measured("pointing_game", explain).untransformed["tau_0"]
        shown = explain(*_one())[0]
        _map(axis, shown, f"{verdict}: {_two(found.score)}, anywhere {_two(found.anywhere)}")
        row, column = divmod(int(shown.argmax()), shown.shape[1])
        axis.plot(column, row, "o", mfc="none", mec="cyan", ms=10)
    for axis in axes:
        axis.contour(REGIONS[ONE], [0.5], colors="white", linewidths=0.8)
    return figure


def drawn_one_map_share() -> Figure:
    """Three maps and the mean of all, true ones and one template."""
    figure = Figure(figsize=(7.6, 3.8), layout="constrained")
    for row, (verdict, explain) in zip(figure.subplots(2, 4), _pair("frame_template").items(), strict=True):
        maps, share = explain(IMAGES, LABELS), measured("one_map_share", explain).share
        for axis, shown in zip(row, maps[:3], strict=False):
            _map(axis, shown, "")
        _map(row[3], maps.mean(0), "the mean of all")
        row[0].set_title(f"{verdict}: share {_two(share)}", fontsize=9)
    return figure


def drawn_object_motion() -> Figure:
    """The object goes, the scene goes; a map that goes with the object, and one drawn into the frame."""
    part = slice(ONE, ONE + 1)
    opacity = REGIONS[part, None].float()
    cut, bare = IMAGES[part] * opacity, SCENES[part]
    move = object_motions(REGIONS[part], torch.tensor([ONE]), 90.0, 1)
    shown = {
        "as it is": composed(cut, opacity, bare),
        "the object goes": composed(move(cut), move(opacity), bare),
        "the scene goes": composed(cut, opacity, POSE(bare)),
    }
    figure = Figure(figsize=(5.8, 5.4), layout="constrained")
    grid = figure.subplots(3, 3)
    for axis, (title, images) in zip(grid[0], shown.items(), strict=True):
        _image(axis, images[0], title)
    for row, (verdict, explain) in zip(grid[1:], _pair("frame_template").items(), strict=True):
        found = _motion(explain)
        titles = (
            verdict,
            f"follows {_two(found.object_follows.calibrated)}",
            f"holds {_two(found.object_holds.calibrated)}",
        )
        for axis, images, title in zip(row, shown.values(), titles, strict=True):
            _map(axis, explain(images, LABELS[part])[0].clamp_min(0), title)
    return figure


def drawn_rankings() -> Figure:
    """Nine tenths of the pixels blanked by the true map and by a random one, and what answers are left."""
    figure = Figure(figsize=(8.2, 2.4), layout="constrained")
    axes = figure.subplots(1, 4, width_ratios=(1, 1, 1.5, 1.5))
    curves = {name: measured("mask_k", explain) for name, explain in _pair("random").items()}
    erased = {name: measured("deletion", explain) for name, explain in _pair("random").items()}
    for axis, (verdict, explain) in zip(axes[:2], _pair("random").items(), strict=True):
        order = least_important_first(explain(*_one()), torch.tensor([ONE]), 0)
        left = blanked(IMAGES[ONE : ONE + 1], order, round(0.9 * order.shape[1]), torch.zeros(1))
        _image(axis, left[0], f"{verdict}, 90 % blanked")
    for verdict, found in curves.items():
        axes[2].plot(
            found.fractions, [point.value for point in found.accuracy.curve], "o-", ms=3, label=verdict
        )
    for verdict, gone in erased.items():
        axes[3].plot(gone.fractions, [point.value for point in gone.curve], "o-", ms=3, label=verdict)
    axes[2].set_title("mask-k: accuracy", fontsize=9)
    axes[3].set_title("deletion: probability", fontsize=9)
    for axis in axes[2:]:
        axis.set_xlabel("share of pixels blanked", fontsize=8)
        axis.legend(fontsize=8)
    return figure


def drawn_bam() -> Figure:
    """The maps of both models, true ones and the same blob for both."""
    figure = Figure(figsize=(5.6, 3.9), layout="constrained")
    blob = CONTROL_MAPS["centre_blob"]
    pairs = {"passes": (TRUE, of_truth(PARTS.scenes)), "fails": (blob, blob)}
    for row, (verdict, makers) in zip(figure.subplots(2, 3), pairs.items(), strict=True):
        found = _contrast(makers)
        _image(row[0], IMAGES[ONE], f"{verdict}: MCS {_two(found.mcs)}")
        labels = (LABELS, PARTS.pictures.scene_labels)
        for axis, explain, classes, name in zip(row[1:], makers, labels, ("objects", "scenes"), strict=True):
            _map(axis, explain(IMAGES[ONE : ONE + 1], classes[ONE : ONE + 1])[0].clamp_min(0), f"of {name}")
    return figure


PASSING: Mapping[str, Callable[[], Figure]] = {
    "patch-deletion": drawn_patch_deletion,
    "frame-control": drawn_frame_control,
    "grid-pointing": drawn_grid_pointing,
    "energy-pointing": drawn_energy_pointing,
    "one-map-share": drawn_one_map_share,
    "object-motion": drawn_object_motion,
    "pointing-passes": drawn_pointing_game,
    "rankings-pass": drawn_rankings,
    "bam-passes": drawn_bam,
}


def _motion(explain: MapOf) -> Any:
    looks = [as_explainer(explain, model) for model in (PARTS.objects, PARTS.scenes)]
    metric = ObjectMotion(*looks, poses=POSES, n_resamples=0)
    metric.update(IMAGES, LABELS, PARTS.pictures.scene_labels, REGIONS, SCENES)
    return metric.result()


def _contrast(makers: Sequence[MapOf]) -> Any:
    models = (PARTS.objects, PARTS.scenes)
    looks = [as_explainer(maker, model) for maker, model in zip(makers, models, strict=True)]
    metric = BAM(*looks, n_resamples=0)
    metric.update(IMAGES, LABELS, PARTS.pictures.scene_labels, REGIONS, SCENES)
    return metric.result()


def _pair(failing: str) -> dict[str, MapOf]:
    return {"passes": TRUE, "fails": CONTROL_MAPS[failing]}


def _one() -> tuple[Tensor, Tensor]:
    return IMAGES[ONE : ONE + 1], LABELS[ONE : ONE + 1]


def _row(n: int) -> tuple[Figure, Any]:
    figure = Figure(figsize=(2.3 * n, 2.5), layout="constrained")
    return figure, figure.subplots(1, n)


def _image(axis: Axes, image: Tensor, title: str) -> None:
    axis.imshow(image.permute(1, 2, 0).clamp(0, 1).numpy())
    axis.set_title(title, fontsize=9)
    axis.set_axis_off()


def _map(axis: Axes, shown: Tensor, title: str, top: float | None = None) -> None:
    low = min(0.0, float(shown.min()))
    axis.imshow(shown.numpy(), cmap=HEAT, vmin=low, vmax=top or max(float(shown.max()), 1e-6))
    axis.set_title(title, fontsize=9)
    axis.set_axis_off()


def _two(found: Any) -> str:
    return f"{found.value:.2f}"
