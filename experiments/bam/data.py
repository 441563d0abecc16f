"""Pictures of the BAM experiment: fruit and pets on scenes, COCO's objects held out; or painted stand-ins."""

from dataclasses import dataclass, replace
from itertools import product

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from experiments.bam.dataset import BamDataset, Cutouts, compose
from experiments.bam.sources import load_bam
from torchsite.data import Dataset
from torchsite.errors import DataError
from torchsite.randomness import make_rng

KINDS = ("fruit", "pets")
HELD_OUT = "coco"
PER_PAIR = {"train": 30, "test": 5}


@dataclass(frozen=True, eq=False)
class BamHalves:
    """Pictures to train on, to test with, and with objects of which the models have seen none."""

    train: BamDataset
    test: BamDataset
    held_out: BamDataset


def real_halves(size: int, *, seed: int = 0, progress: bool = False) -> BamHalves:
    """Composed from the `bam` folder of a data directory, in random order."""
    train, test = (real_half(half, size, seed=seed, progress=progress) for half in ("train", "test"))
    held_out = load_bam("test", objects=HELD_OUT, size=size, per_pair=2, seed=seed, progress=progress)
    return BamHalves(train, test, shuffled(held_out, seed))


def real_half(half: str, size: int, *, seed: int = 0, progress: bool = False) -> BamDataset:
    """The pictures to train on, or those to test with, with objects of both kinds, in random order."""
    kinds = (
        load_bam(half, objects=kind, size=size, per_pair=PER_PAIR[half], seed=seed, progress=progress)
        for kind in KINDS
    )
    return shuffled(join_objects(*kinds), seed)


def painted_halves(size: int = 32, *, seed: int = 0) -> BamHalves:
    """Coloured shapes on patterns, for a quick run without data; the held-out shapes are of other colours."""
    shapes, strange = (_shapes(hue, seed) for hue in (0, 1))
    names = ("disc", "square", "cross")
    train, test, held_out = (
        compose(
            _patterns(n, size, seed + number), cutouts, names, per_pair=per_pair, seed=seed, progress=False
        )
        for number, (n, per_pair, cutouts) in enumerate(((12, 24, shapes), (6, 4, shapes), (6, 2, strange)))
    )
    halves = (replace(train, split="train"), replace(test, split="test"), replace(held_out, split="test"))
    return BamHalves(*(shuffled(half, seed) for half in halves))


def join_objects(first: BamDataset, second: BamDataset) -> BamDataset:
    """The pictures of two kinds of objects on the same scenes, as one set with the objects of both."""
    if first.scenes.shape != second.scenes.shape or not torch.equal(first.scenes, second.scenes):
        raise DataError("only pictures on the same scenes can be joined: compose both with the same folder")

    def both(name: str) -> Tensor:
        return torch.cat([getattr(first, name), getattr(second, name)])

    shifted = replace(second, object_labels=second.object_labels + len(first.object_classes))
    return replace(
        first,
        images=both("images"),
        object_labels=torch.cat([first.object_labels, shifted.object_labels]),
        scene_labels=both("scene_labels"),
        regions=both("regions"),
        scene_rows=both("scene_rows"),
        object_classes=(*first.object_classes, *second.object_classes),
        skipped=first.skipped + second.skipped,
    )


def shuffled(bam: BamDataset, seed: int) -> BamDataset:
    """The same pictures in random order, so that any first part is a fair sample."""
    return bam[torch.randperm(len(bam), generator=make_rng(seed, "bam order"))]


def _patterns(n: int, size: int, seed: int) -> Dataset:
    """Stripes, checks and gradients in two tones, `n` of each."""
    rng = make_rng(seed, "patterns")
    rows, cols = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    images, labels = [], []
    for label, _ in product(range(3), range(n)):
        period = int(torch.randint(4, 8, (1,), generator=rng))
        stripes, checks = (rows // period) % 2, (rows // period + cols // period) % 2
        pattern = (stripes, checks, (rows + cols) / (2 * size))[label].float()
        tones = torch.rand(2, 3, 1, 1, generator=rng)
        images.append(tones[0] + (tones[1] - tones[0]) * pattern)
        labels.append(label)
    pixels = (torch.stack(images) * 255).to(torch.uint8)
    return Dataset(pixels, torch.tensor(labels), ("stripes", "checks", "slope"), "patterns")


def _shapes(hue: int, seed: int, n: int = 6, side: int = 24) -> Cutouts:
    """Cut-outs of discs, squares and crosses."""
    rng = make_rng(seed, "shapes", hue)
    found: list[list[Image.Image]] = [[], [], []]
    for kind, _ in product(range(3), range(n)):
        bright, dark = (
            200 + int(torch.randint(56, (1,), generator=rng)),
            int(torch.randint(60, (1,), generator=rng)),
        )
        colour = [dark, dark, dark]
        colour[(kind + hue) % 3] = bright
        cutout = Image.new("RGBA", (side, side), (0, 0, 0, 0))
        draw, fill = ImageDraw.Draw(cutout), (*colour, 255)
        if kind == 0:
            draw.ellipse((1, 1, side - 2, side - 2), fill=fill)
        elif kind == 1:
            draw.rectangle((2, 2, side - 3, side - 3), fill=fill)
        else:
            draw.rectangle((side // 3, 0, 2 * side // 3, side - 1), fill=fill)
            draw.rectangle((0, side // 3, side - 1, 2 * side // 3), fill=fill)
        found[kind].append(cutout)
    return found
