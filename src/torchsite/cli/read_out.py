"""What `torchsite explain` writes beside its sheets: overlays, regions, one table over many files.

| option | file | what |
|---|---|---|
| `--overlay` | `NAME.overlay.png` | the whole picture, grey, with the evidence over it in red and blue |
| `--regions geojson` | `NAME.geojson` | polygons around the strongest evidence, in pixels of the file |
| `--regions coco` | `regions.json` | the same for all pictures, as COCO has annotations |
| `--csv TABLE` | TABLE | a row for each picture |
"""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from torchsite.data.pictures import upright_rgb
from torchsite.files import csv_table, write_atomically
from torchsite.model import Explanation
from torchsite.model.drawing import overlay
from torchsite.model.explanation import enlarge
from torchsite.model.regions import (
    Placement,
    coco_annotations,
    fitted_placement,
    strongest_regions,
    to_geojson,
)
from torchsite.model.tiles import TiledExplanation

LONGEST = 1024
COLUMNS = (
    "picture", "prediction", "probability", "runner_up", "runner_up_probability", "class", "rather_than",
    "share_of_evidence", "deletion_check", "abstain", "error",
)  # fmt: skip
Explained = Explanation | TiledExplanation


@dataclass
class ReadOut:
    """What is to be written, and what must wait for the last picture."""

    out: Path
    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    overlay: bool = False
    regions: str | None = None
    table: Path | None = None
    margin: float = 1.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    images: list[dict[str, Any]] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)

    def write(
        self, picture: Path, target: Path, explained: Explained, index: int, label: int, line: dict[str, Any]
    ) -> None:
        """The files of one picture."""
        self.rows.append(line)
        if not self.overlay and self.regions is None:
            return
        pixels = upright_rgb(picture)
        heatmap = explained.heatmaps(classes=torch.tensor([label] * len(explained.logits)))[index]
        placement = self._placement(pixels, heatmap, isinstance(explained, TiledExplanation))
        if self.overlay:
            drawn = overlay(pixels, _over(heatmap, placement, pixels.shape[:2]))
            write_atomically(target.with_suffix(".overlay.png"), _png(drawn))
        if self.regions is not None:
            self._write_regions(picture, target, heatmap, placement, label, pixels)

    def failed(self, picture: Path, problem: str) -> None:
        """A picture that could not be read has a row as well."""
        self.rows.append({"picture": str(picture), "error": problem})

    def finish(self) -> None:
        """The files about all pictures."""
        if self.table is not None:
            rows = sorted(self.rows, key=lambda row: str(row["picture"]))
            cells = [[row.get(column) for column in COLUMNS] for row in rows]
            write_atomically(self.table, csv_table([COLUMNS, *cells]))
        if self.regions == "coco":
            categories = [{"id": number, "name": name} for number, name in enumerate(self.classes, start=1)]
            content = {"images": self.images, "categories": categories, "annotations": self.annotations}
            write_atomically(self.out / "regions.json", json.dumps(content))

    def _placement(self, pixels: np.ndarray, heatmap: Tensor, tiled: bool) -> Placement:
        height, width = pixels.shape[:2]
        if tiled:
            return Placement(scale=width / heatmap.shape[1])
        return fitted_placement((width, height), self.shape, self.margin)

    def _write_regions(
        self,
        picture: Path,
        target: Path,
        heatmap: Tensor,
        placement: Placement,
        label: int,
        pixels: np.ndarray,
    ) -> None:
        regions = strongest_regions(heatmap)
        if self.regions == "geojson":
            about = {"picture": picture.name, "class": self.classes[label]}
            content = to_geojson(regions, placement, about)
            write_atomically(target.with_suffix(".geojson"), json.dumps(content))
            return
        height, width = pixels.shape[:2]
        number = len(self.images) + 1
        self.images.append({"id": number, "file_name": str(picture), "width": width, "height": height})
        first = len(self.annotations) + 1
        self.annotations += coco_annotations(regions, placement, number, label + 1, first)


def _over(heatmap: Tensor, placement: Placement, size: tuple[int, ...]) -> np.ndarray:
    """A map at its place in the file's picture; nothing is said of what the model did not see."""
    rows, cols = (max(1, round(placement.scale * side)) for side in heatmap.shape)
    spread = enlarge(heatmap[None, None], (rows, cols))[0, 0].numpy()
    whole = np.zeros((size[0], size[1]))
    top, left = max(0, round(placement.top)), max(0, round(placement.left))
    part = spread[: size[0] - top, : size[1] - left]
    whole[top : top + part.shape[0], left : left + part.shape[1]] = part
    return whole


def _png(pixels: np.ndarray) -> bytes:
    """A PNG file of at most `LONGEST` pixels a side."""
    picture, buffer = Image.fromarray(pixels), io.BytesIO()
    picture.thumbnail((LONGEST, LONGEST))
    picture.save(buffer, "PNG")
    return buffer.getvalue()
