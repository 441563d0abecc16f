"""The groups of an audit: what the evidence for a class stands on, and where that is in other pictures.

    content       pieces around the peaks of evidence that show alike things (`pieces.py`)
    frame, corners, fixed spot     the place that has most of the evidence beyond its part of the area
    regions       what the user says

A group is found again by the centres of the class: a piece belongs to the one whose centre is nearest.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from torchsite.errors import NotApplicableError
from torchsite.evaluation.pieces import (
    Pieces,
    Vectors,
    find_pieces,
    group_pieces,
    join_pieces,
    strongest_window,
)
from torchsite.evaluation.probes import Asked, Group
from torchsite.shapes import Heatmaps, Labels, Masks, Scores, Size

Heatmap = Float[Tensor, "height width"]
Mask = Bool[Tensor, "height width"]
NINTHS = (
    "upper left",
    "top",
    "upper right",
    "left",
    "middle",
    "right",
    "lower left",
    "bottom",
    "lower right",
)
CONTENT, REGIONS, SPOT = "content", "regions", "fixed spot"
RIM, CORNER = 1 / 16, 1 / 5
DIGITS = 5  # of the centres in a result file


@dataclass(frozen=True, eq=False)
class OfClass:
    """A class: its pictures, its evidence in them, and the groups of what that stands on."""

    label: int
    rows: Labels
    maps: Heatmaps
    groups: list[Group]
    centres: Vectors  # of its groups of content, which come first

    @cached_property
    def usual(self) -> Heatmap:
        """The share of the evidence at each place, on average over pictures."""
        wide = self.maps.double()
        return (wide / wide.sum((1, 2), keepdim=True).clamp_min(1e-12)).mean(0)

    def evidence_in(self, group: Group) -> Scores:
        """The evidence inside the group, for each picture of the class."""
        places, inside = torch.searchsorted(self.rows, group.rows), torch.zeros(len(self.rows)).double()
        return inside.index_add_(0, places, (self.maps[places] * group.masks).double().sum((1, 2)))

    def plain_centres(self) -> list[list[float]]:
        """The centres as a result keeps them."""
        return [[float(f"{x:.{DIGITS}g}") for x in centre] for centre in self.centres.tolist()]


def of_class(asked: Asked, label: int, regions: Masks | None) -> OfClass:
    """Explain the pictures of a class and group what has the evidence."""
    rows = (asked.data.labels == label).nonzero()[:, 0]
    maps, parts = zip(*explained(asked, rows, label), strict=True)
    pieces = join_pieces(list(parts))
    numbers, groups, centres = group_pieces(pieces.features, asked.seed), [], []
    for number in numbers.unique().tolist():
        some = pieces.of(numbers == number)
        groups.append(Group(label, CONTENT, *some.by_picture(asked.data.size)))
        centres.append(some.features.mean(0))
    if regions is not None and (has := regions[rows].flatten(1).any(1)).any():
        groups.append(Group(label, REGIONS, rows[has], regions[rows[has]]))
    vectors = torch.stack(centres) if centres else pieces.features
    return OfClass(label, rows, torch.cat(maps), groups, vectors)


def explained(asked: Asked, rows: Labels, label: int) -> Iterator[tuple[Heatmaps, Pieces]]:
    """The evidence for a class in some pictures and the pieces around its peaks, batch by batch."""
    for some in rows.split(asked.batch_size):
        images = asked.images(some)
        maps = asked.maps(images, label)
        found = find_pieces(maps, asked.features(images))
        yield maps, replace(found, rows=some[found.rows])


def find_again(asked: Asked, group: Mapping[str, Any], centres: list[list[float]]) -> Masks:
    """Where a group of an audit stands in all pictures of its class; nowhere in those of other classes."""
    if group["kind"] == REGIONS:
        raise NotApplicableError("these regions were given by the user: give their file with --ignore")
    label = asked.data.classes.index(group["class"])
    rows = (asked.data.labels == label).nonzero()[:, 0]
    found = torch.zeros(len(asked.data), *asked.data.size, dtype=torch.bool)
    if group["kind"] != CONTENT:
        left, top, right, bottom = group.get("box", (0, 0, 0, 0))
        spot = torch.zeros(asked.data.size, dtype=torch.bool)
        spot[top:bottom, left:right] = True
        found[rows] = places(asked.data.size).get(group["kind"], spot)
        return found
    for _, pieces in explained(asked, rows, label):
        nearest = torch.cdist(pieces.features.double(), torch.tensor(centres).double()).argmin(1)
        some, masks = pieces.of(nearest == group["centre"]).by_picture(asked.data.size)
        found[some] = masks
    return found


def place_of(one: OfClass) -> Group:
    """The place that has most of the evidence beyond its part of the area."""
    size = (one.maps.shape[-2], one.maps.shape[-1])
    masks = places(size) | {SPOT: strongest_window(one.usual)}
    area = 1 / one.usual.numel()
    name = max(masks, key=lambda name: float(((one.usual - area) * masks[name]).sum()))
    return Group(one.label, name, one.rows, masks[name].expand(len(one.rows), *size))


def places(size: Size) -> dict[str, Mask]:
    """The frame and the corners of pictures of this size."""
    down, across = (torch.minimum(torch.arange(n), torch.arange(n).flip(0)) for n in size)
    rows, cols = torch.broadcast_tensors(down[:, None], across[None, :])
    rim, corner = (max(1, round(share * min(size))) for share in (RIM, CORNER))
    return {"frame": torch.minimum(rows, cols) < rim, "corners": torch.maximum(rows, cols) < corner}


def stands(group: Group) -> dict[str, Any]:
    """The ninth of the picture that holds most of the group, and how much of it that is."""
    rows = F.adaptive_avg_pool2d(group.masks.double(), 3).mean(0)
    share = rows / rows.sum().clamp_min(1e-12)
    return {"place": NINTHS[int(share.argmax())], "share": float(share.max())}


def box_of(mask: Mask) -> list[int]:
    """The smallest box around a mask: left, top, right, bottom; all zero for an empty one."""
    if not mask.any():
        return [0, 0, 0, 0]
    rows, cols = (mask.any(axis).nonzero()[:, 0].tolist() for axis in (1, 0))
    return [cols[0], rows[0], cols[-1] + 1, rows[-1] + 1]
