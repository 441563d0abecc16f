"""A data set is a small value: whole tensors of pixels and labels, and the names of the classes.

Batches are index look-ups on these tensors, so one process keeps a model busy without workers. Pixels stay
uint8 until a batch of them is used; models take float images in [0, 1] and normalise by themselves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from torchsite.data.margins import centre
from torchsite.errors import ConfigError, DataError, ShapeError
from torchsite.randomness import Rng
from torchsite.shapes import Images, Labels, Masks, MultiHot, Pixels, Size

Index = int | slice | Tensor | Sequence[int] | np.ndarray


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled pictures of one size; an index, a slice or an index array selects a smaller `Dataset`.

    `paths` are the files that the pictures were read from, row by row; there are none if there were no files.
    Where several labels may be true of a picture, or none, `multi_hot` has them; its `labels` then are the
    rarest of those that are true, and 0 where none is. `larger` are pictures of which `images` are the
    centres, if they are kept with a margin (`margins.py`). `regions` are what a training ignores: masks of
    the pictures as they are kept (`regions.py`).
    """

    images: Pixels
    labels: Labels
    classes: tuple[str, ...]
    name: str = "unnamed"
    split: str = ""
    skipped: int = 0
    paths: tuple[Path, ...] = ()
    multi_hot: MultiHot | None = None
    larger: Pixels | None = None
    regions: Masks | None = None

    def __post_init__(self) -> None:
        _check_tensors(self.images, self.labels)
        if self.larger is not None:
            _check_larger(self.larger, self.images)
        if self.regions is not None:
            check_regions(self.regions, self.kept)
        if self.paths and len(self.paths) != len(self.labels):
            raise ShapeError(
                f"paths: expected {len(self.labels)}, one for each image, or none, got {len(self.paths)}"
            )
        if self.multi_hot is not None and (
            self.multi_hot.dtype != torch.bool
            or self.multi_hot.shape != (len(self.labels), len(self.classes))
        ):
            raise ShapeError(
                f"multi_hot: expected bool of shape {(len(self.labels), len(self.classes))}, "
                f"one row for each image, got {self.multi_hot.dtype} of {tuple(self.multi_hot.shape)}"
            )
        lowest, highest = (int(end) for end in self.labels.aminmax()) if len(self.labels) else (0, 0)
        if lowest < 0 or highest >= max(1, len(self.classes)):
            raise DataError(
                f"{self.name}: expected labels from 0 to {len(self.classes) - 1} for its classes, "
                f"got {lowest} to {highest}: check the label file"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Index) -> "Dataset":
        rows = as_rows(index, len(self))
        kept = torch.arange(len(self))[rows].tolist() if self.paths else []
        paths = tuple(self.paths[row] for row in kept)
        multi_hot = None if self.multi_hot is None else self.multi_hot[rows]
        larger = None if self.larger is None else self.larger[rows]
        return replace(
            self,
            images=self.images[rows] if larger is None else centre(larger, self.size),
            labels=self.labels[rows],
            paths=paths,
            multi_hot=multi_hot,
            larger=larger,
            regions=None if self.regions is None else self.regions[rows],
        )

    def __iter__(self) -> Iterator["Dataset"]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        return (
            f"Dataset({self.title}, {len(self):,} images of {self.shape_text}, {len(self.classes)} classes)"
        )

    @property
    def title(self) -> str:
        """The name and the split in one word, as tables and logs print them."""
        return f"{self.name}/{self.split}" if self.split else self.name

    @property
    def size(self) -> Size:
        """Height and width of the pictures."""
        return (self.images.shape[-2], self.images.shape[-1])

    @property
    def kept(self) -> Pixels:
        """The pictures as they are kept: with their margin, if there is one."""
        return self.images if self.larger is None else self.larger

    @cached_property
    def with_regions(self) -> Labels:
        """The numbers of the pictures that have a region."""
        assert self.regions is not None
        return self.regions.flatten(1).any(1).nonzero()[:, 0]

    @property
    def margin(self) -> float:
        """How many times larger the pictures are kept than they are seen; 1 for no margin."""
        return 1.0 if self.larger is None else self.larger.shape[-1] / self.images.shape[-1]

    def with_margin(self, size: Size) -> "Dataset":
        """The centres of the pictures, which are kept as the larger ones around them."""
        return replace(self, images=centre(self.images, size), larger=self.images)

    @property
    def shape_text(self) -> str:
        """Channels × height × width, for people."""
        return "×".join(str(side) for side in self.images.shape[1:])

    @property
    def counts(self) -> tuple[int, ...]:
        """How many pictures each class has."""
        if self.multi_hot is not None:
            return tuple(self.multi_hot.sum(0).tolist())
        return tuple(torch.bincount(self.labels, minlength=len(self.classes)).tolist())

    def spread(self, n: int | None) -> "Dataset":
        """At most `n` pictures, every class in proportion, in their order."""
        if n is None or n >= len(self):
            return self
        return self[self.labels.argsort(stable=True)[torch.arange(n) * len(self) // n].sort().values]

    def summary(self) -> str:
        """What is in here, in a few lines for people."""
        width = max((len(name) for name in self.classes), default=0)
        rows = [f"  {name:<{width}}  {n:>7,}" for name, n in zip(self.classes, self.counts, strict=True)]
        skipped = f", {self.skipped} unreadable skipped" if self.skipped else ""
        megabytes = self.images.numel() / 1e6
        head = (
            f"{self.title}: {len(self):,} images of {self.shape_text} (uint8, {megabytes:,.1f} MB){skipped}"
        )
        return "\n".join([head, f"{len(self.classes)} classes:", *rows])


def to_float(pixels: Pixels) -> Images:
    """uint8 pixels as the float images in [0, 1] that models take."""
    if pixels.dtype != torch.uint8:
        raise ShapeError(f"expected uint8 pixels, got {pixels.dtype}: float images need no conversion")
    return pixels.float().div_(255)


def batches(
    dataset: Dataset,
    batch_size: int,
    *,
    rng: Rng | None = None,
    drop_last: bool = False,
    device: torch.device | str | None = None,
) -> Iterator[tuple[Images, Labels]]:
    """Float images in [0, 1] and their labels, batch by batch; in random order if `rng` is given."""
    if batch_size < 1:
        raise ConfigError(f"batch_size: expected at least 1, got {batch_size}")
    n = len(dataset)
    order = torch.arange(n) if rng is None else torch.randperm(n, generator=rng)
    starts = range(0, n - n % batch_size if drop_last else n, batch_size)
    return (_batch(dataset, order[start : start + batch_size], device) for start in starts)


def larger_pictures(
    dataset: Dataset, rows: Tensor, device: torch.device | str | None = None
) -> Images | None:
    """Some of the pictures with their margins, as float images in [0, 1]; None if they have none."""
    return None if dataset.larger is None else to_float(dataset.larger[rows].to(device))


def _batch(dataset: Dataset, rows: Tensor, device: torch.device | str | None) -> tuple[Images, Labels]:
    images = dataset.images.index_select(0, rows)  # copies whole rows, many times faster than images[rows]
    return to_float(images.to(device)), dataset.labels.index_select(0, rows).to(device)


def _check_tensors(images: Tensor, labels: Tensor) -> None:
    if images.dtype != torch.uint8 or images.ndim != 4:
        raise ShapeError(
            f"images: expected uint8 of batch × channels × height × width, "
            f"got {images.dtype} of {tuple(images.shape)}"
        )
    if labels.dtype != torch.int64 or labels.shape != images.shape[:1]:
        raise ShapeError(
            f"labels: expected int64 of shape ({len(images)},), one for each image, "
            f"got {labels.dtype} of {tuple(labels.shape)}"
        )


def _check_larger(larger: Tensor, images: Tensor) -> None:
    around = [whole - part for whole, part in zip(larger.shape[-2:], images.shape[-2:], strict=True)]
    if larger.dtype != torch.uint8 or larger.shape[:2] != images.shape[:2] or min(around) < 0:
        raise ShapeError(
            f"larger: expected uint8 around each image of {tuple(images.shape)}, "
            f"got {larger.dtype} of {tuple(larger.shape)}"
        )
    if any(pixels % 2 for pixels in around):
        raise ShapeError(f"larger: expected as many pixels on either side, got {around} more in all")


def check_regions(regions: Tensor, pictures: Tensor) -> None:
    """Raise a `ShapeError` unless there is a mask for each of the pictures."""
    expected = (len(pictures), *pictures.shape[-2:])
    if regions.dtype != torch.bool or regions.shape != expected:
        raise ShapeError(
            f"regions: expected bool of {expected}, a mask for each picture, got {regions.dtype} of "
            f"{tuple(regions.shape)}"
        )


def as_rows(index: Index, n: int) -> slice | Tensor:
    """What selects rows and keeps the batch axis."""
    if isinstance(index, slice):
        if index.step is None or index.step > 0:
            return index
        return torch.arange(n)[list(range(*index.indices(n)))]
    rows = torch.as_tensor(index)
    if rows.numel() == 0 and rows.dtype != torch.bool:
        rows = rows.long()
    if rows.ndim > 1 or rows.is_floating_point():
        raise ShapeError(
            f"index: expected whole numbers or a mask, one axis, got {rows.dtype} of {tuple(rows.shape)}"
        )
    return rows.reshape(-1) if rows.ndim == 0 else rows
