"""BAM: the same picture with two right answers, the object in it and the scene behind it.

Each object class is pasted into pictures of each scene class (Yang and Kim, 2019, "Benchmarking Attribution
Methods with Relative Feature Importance"). A classifier of scenes should ignore the object, a classifier of
objects should not: which of the two a heatmap shows is known by construction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from tqdm import tqdm

from torchsite.data.dataset import Dataset, Index, as_rows
from torchsite.errors import ConfigError, DataError, did_you_mean
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Labels, Masks, Pixels

OBJECT_SCALE = (1 / 3, 1 / 2)
OPAQUE = 128
PER_PICTURE = ("images", "object_labels", "scene_labels", "regions", "scene_rows")
Cutouts = Sequence[Sequence[Image.Image]]


@dataclass(frozen=True, eq=False)
class BamDataset:
    """Composed pictures with both labellings, the region of the object, and the scene without it."""

    images: Pixels
    object_labels: Labels
    scene_labels: Labels
    regions: Masks
    scene_rows: Labels
    scenes: Pixels
    object_classes: tuple[str, ...]
    scene_classes: tuple[str, ...]
    name: str = "bam"
    split: str = ""
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Index) -> "BamDataset":
        rows = as_rows(index, len(self))
        return replace(self, **{name: getattr(self, name)[rows] for name in PER_PICTURE})

    @property
    def scenes_only(self) -> Pixels:
        """The twin of every picture: the same scene, nothing pasted."""
        return self.scenes[self.scene_rows]

    def labelled(self, by: str) -> Dataset:
        """The pictures as a data set for classifiers, by "object" or by "scene"."""
        labellings = {
            "object": (self.object_labels, self.object_classes),
            "scene": (self.scene_labels, self.scene_classes),
        }
        if by not in labellings:
            raise ConfigError(f"unknown labelling {by!r}: {did_you_mean(by, labellings)}")
        labels, classes = labellings[by]
        return Dataset(self.images, labels, classes, f"{self.name}-{by}", self.split, self.skipped)


@dataclass(frozen=True)
class Paste:
    """One composition: which scene, which cut-out, how large, and where (as shares of the free room)."""

    scene_row: int
    cutout: Image.Image
    scale: float
    left: float
    top: float


def compose(
    scenes: Dataset,
    cutouts: Cutouts,
    object_classes: tuple[str, ...],
    *,
    per_pair: int,
    seed: int = 0,
    progress: bool = True,
) -> BamDataset:
    """`per_pair` pictures of every object class in every scene class; each round shows every pair once."""
    if per_pair < 1:
        raise ConfigError(f"per_pair: expected at least 1, got {per_pair}")
    pairs = list(product(range(len(object_classes)), range(len(scenes.classes))))
    plans = [_plan(scenes, cutouts, object_classes, pair, per_pair, seed) for pair in pairs]
    rounds = [plan[number] for number in range(per_pair) for plan in plans]
    n, size, pixels = len(rounds), scenes.images.shape[-1], scenes.images.numpy()
    images, regions = np.empty((n, 3, size, size), np.uint8), np.zeros((n, size, size), np.bool_)
    for row, plan in enumerate(tqdm(rounds, "composing BAM", disable=None if progress else True)):
        _paste(pixels[plan.scene_row], plan, images[row], regions[row])
    object_labels, scene_labels = (
        torch.tensor(column).repeat(per_pair) for column in zip(*pairs, strict=True)
    )
    scene_rows = torch.tensor([plan.scene_row for plan in rounds])
    return BamDataset(
        torch.from_numpy(images),
        object_labels,
        scene_labels,
        torch.from_numpy(regions),
        scene_rows,
        scenes.images,
        object_classes,
        scenes.classes,
    )


def _plan(
    scenes: Dataset,
    cutouts: Cutouts,
    object_classes: tuple[str, ...],
    pair: tuple[int, int],
    n: int,
    seed: int,
) -> list[Paste]:
    """The compositions of one pair; its own random stream, so other classes have no say in it."""
    which_object, which_scene = pair
    rng = make_rng(seed, "bam", object_classes[which_object], scenes.classes[which_scene])
    scene_rows = torch.nonzero(scenes.labels == which_scene).flatten()
    if not len(scene_rows) or not len(cutouts[which_object]):
        raise DataError("every object class and every scene class needs at least one picture: add some")
    chosen_scenes = scene_rows[_draw(len(scene_rows), n, rng)].tolist()
    chosen_cutouts = [
        cutouts[which_object][row] for row in _draw(len(cutouts[which_object]), n, rng).tolist()
    ]
    low, high = OBJECT_SCALE
    chances = torch.rand(n, 3, generator=rng, dtype=torch.float64).tolist()
    return [
        Paste(scene, cutout, low + (high - low) * scale, left, top)
        for scene, cutout, (scale, left, top) in zip(chosen_scenes, chosen_cutouts, chances, strict=True)
    ]


def _draw(n_available: int, n: int, rng: Rng) -> Tensor:
    """`n` row numbers in random order, none a second time before all came once."""
    turns = -(-n // n_available)
    return torch.cat([torch.randperm(n_available, generator=rng) for _ in range(turns)])[:n]


def _paste(scene: np.ndarray, plan: Paste, image: np.ndarray, region: np.ndarray) -> None:
    """Write the composed picture and the region of its object into the given arrays."""
    size = scene.shape[-1]
    shrink = plan.scale * size / max(plan.cutout.size)
    width, height = (max(1, round(side * shrink)) for side in plan.cutout.size)
    cutout = plan.cutout.resize((width, height), Image.Resampling.BICUBIC)
    left, top = round(plan.left * (size - width)), round(plan.top * (size - height))
    picture = Image.fromarray(np.ascontiguousarray(scene.transpose(1, 2, 0)))
    picture.paste(cutout, (left, top), cutout)
    image[:] = np.asarray(picture).transpose(2, 0, 1)
    alpha = np.asarray(cutout.getchannel("A"))
    region[top : top + height, left : left + width] = alpha >= min(OPAQUE, int(alpha.max()))
