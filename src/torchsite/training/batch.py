"""One step's pictures and their poses: a function of seed and step, whoever works on which part.

The poses of a step are drawn for the whole global batch. A process of several, and a part of a batch whose
gradients are accumulated, take their rows of it; together they see what one process would see at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from torchsite.shapes import Images, Labels, Masks, Scalar, Size
from torchsite.training.loader import Rows, Share
from torchsite.transforms import Transform


@dataclass(frozen=True, eq=False)
class Batch:
    """The pictures that one process works on at once; `all_poses` are those of the global batch.

    `shown` is what is seen of the last view of each picture; None: all of it.
    """

    rows: Rows
    images: Images
    labels: Labels
    share: Share
    all_poses: tuple[Transform, ...]
    shown: Masks | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def poses(self) -> tuple[Transform, ...]:
        """The transforms of these pictures, one or two for each."""
        return tuple(pose[self.share.rows(len(pose))] for pose in self.all_poses)

    def views(self) -> Images:
        """The pictures in all their poses, view by view."""
        *before, last = (pose(self.images) for pose in self.poses)
        return torch.cat([*before, last if self.shown is None else last * self.shown[:, None]])

    def parts(self, n: int) -> Iterator["Batch"]:
        """The batch in `n` parts of equal size, one after the other."""
        for i in range(n):
            share = replace(self.share, part=i, parts=n)
            rows = slice(len(self) * i // n, len(self) * (i + 1) // n)
            yield Batch(
                self.rows[rows],
                self.images[rows],
                self.labels[rows],
                share,
                self.all_poses,
                None if self.shown is None else self.shown[rows],
            )

    def coverages(self, size: Size, *, inverse: bool) -> list[Scalar | float]:
        """For each view, this part's share of all cells that the view covers, times the number of parts.

        With these weights the mean over parts of their means over covered cells is the mean over all covered
        cells of the global batch.
        """
        if self.share.of == 1:
            return [1.0] * len(self.all_poses)
        return [self._coverage(pose.inverse() if inverse else pose, size) for pose in self.all_poses]

    def _coverage(self, poses: Transform, size: Size) -> Scalar:
        covered = poses.mask(size).flatten(1).sum(1)
        return covered[self.share.rows(len(covered))].sum() * self.share.of / covered.sum().clamp_min(1)
