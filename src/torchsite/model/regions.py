"""Regions of the strongest evidence, with exact outlines, as GeoJSON.

The strongest evidence are the pixels with the largest positive values that together hold a share of all
positive evidence. Touching pixels make a region. Outlines follow the edges of pixels, so that a region and
its outline have the same area; coordinates are those of the picture's file, x to the right and y down.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from torchsite.data.margins import larger_size
from torchsite.errors import ConfigError

Ring = list[tuple[float, float]]
Map = Float[Tensor, "rows cols"]
LEAST_SHARE = 0.02


@dataclass(frozen=True)
class Placement:
    """The place of a map in its file's picture: x_file = left + scale · x_map, and so for y."""

    left: float = 0.0
    top: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Region:
    """Touching pixels of strong evidence: their mask, their part of all positive evidence, their outlines."""

    mask: np.ndarray
    share: float
    rings: list[Ring]


def strongest_regions(heatmap: Map, share: float = 0.5, least: float = LEAST_SHARE) -> list[Region]:
    """The regions that hold `share` of the positive evidence, the strongest first; tiny ones are left out."""
    if not 0 < share <= 1:
        raise ConfigError(f"share: expected a part of the evidence in (0, 1], got {share}")
    values = np.clip(np.asarray(heatmap.detach().cpu().double()), 0, None)
    total = values.sum()
    if not total > 0:
        return []
    order = np.sort(values.ravel())[::-1]
    count = int(np.searchsorted(np.cumsum(order), share * total * (1 - 1e-9))) + 1
    strong = values >= max(order[min(count, len(order)) - 1], np.finfo(float).tiny)
    found = [(mask, float(values[mask].sum() / total)) for mask in components(strong)]
    kept = [Region(mask, part, outlines(mask)) for mask, part in found if part >= least * share]
    return sorted(kept, key=lambda region: -region.share)


def components(mask: np.ndarray) -> Iterator[np.ndarray]:
    """The masks of pixels that touch along an edge, one after the other."""
    left = mask.copy()
    rows, cols = mask.shape
    for start in zip(*np.nonzero(mask), strict=True):
        if not left[start]:
            continue
        part, queue = np.zeros_like(mask), [start]
        left[start] = False
        while queue:
            row, col = queue.pop()
            part[row, col] = True
            for r, c in ((row - 1, col), (row + 1, col), (row, col - 1), (row, col + 1)):
                if 0 <= r < rows and 0 <= c < cols and left[r, c]:
                    left[r, c] = False
                    queue.append((r, c))
        yield part


def outlines(mask: np.ndarray) -> list[Ring]:
    """The closed outlines of a mask along pixel edges: the outer one first, then those of its holes."""
    edges: dict[tuple[int, int], list[tuple[int, int]]] = {}
    padded = np.pad(mask, 1)
    for row, col in zip(*np.nonzero(mask), strict=True):
        y, x = int(row), int(col)
        for (dy, dx), begin, end in (
            ((-1, 0), (x, y), (x + 1, y)),
            ((0, 1), (x + 1, y), (x + 1, y + 1)),
            ((1, 0), (x + 1, y + 1), (x, y + 1)),
            ((0, -1), (x, y + 1), (x, y)),
        ):
            if not padded[y + 1 + dy, x + 1 + dx]:
                edges.setdefault(begin, []).append(end)
    rings = []
    while edges:
        rings.append(_ring(edges))
    return sorted(rings, key=lambda ring: -abs(signed_area(ring)))


def _ring(edges: dict[tuple[int, int], list[tuple[int, int]]]) -> Ring:
    """One closed walk along edges, which are used up; corners only. At a crossing it turns right."""
    start = place = next(iter(edges))
    walk, heading = [start], (0, 0)
    while True:
        ways = edges[place]
        way = min(ways, key=lambda end: _turn(heading, (end[0] - place[0], end[1] - place[1])))
        ways.remove(way)
        if not ways:
            del edges[place]
        heading, place = (way[0] - place[0], way[1] - place[1]), way
        walk.append(place)
        if place == start:
            break
    corners = [
        walk[i] for i in range(len(walk) - 1) if _cross(walk[i - 1 if i else -2], walk[i], walk[i + 1])
    ]
    return [(float(x), float(y)) for x, y in [*corners, corners[0]]]


def _turn(before: tuple[int, int], after: tuple[int, int]) -> int:
    """Turning right keeps pixels that touch at a corner only apart."""
    return -(before[0] * after[1] - before[1] * after[0])


def _cross(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    return (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])


def signed_area(ring: Ring) -> float:
    """The area inside a closed ring, positive for outer ones (clockwise as seen), negative for holes."""
    return sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in itertools.pairwise(ring)) / 2


def to_geojson(regions: list[Region], placement: Placement, properties: dict[str, Any]) -> dict[str, Any]:
    """A FeatureCollection with one polygon for each region, holes included, in pixels of the file."""
    features = [
        {
            "type": "Feature",
            "properties": properties | {"share_of_evidence": round(region.share, 4)},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[list(_placed(point, placement)) for point in ring] for ring in region.rings],
            },
        }
        for region in regions
    ]
    return {"type": "FeatureCollection", "features": features}


def _placed(point: tuple[float, float], placement: Placement) -> tuple[float, float]:
    x, y = point
    return (
        round(placement.left + placement.scale * x, 3),
        round(placement.top + placement.scale * y, 3),
    )


def fitted_placement(size: tuple[int, int], shape: tuple[int, int, int], margin: float = 1.0) -> Placement:
    """The place of a model's picture in a file of (width, height): its centre, as in `read_picture`."""
    _, height, width = shape
    side = larger_size(max(height, width), margin)
    scale = min(size) / side
    left, top = (
        (length - min(size)) / 2 + scale * ((side - part) // 2)
        for length, part in zip(size, (width, height), strict=True)
    )
    return Placement(left, top, scale)
