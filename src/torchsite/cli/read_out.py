"""What `torchsite explain` writes beside its sheets: overlays, regions, one table over many files.

| option | file | what |
|---|---|---|
| `--overlay` | `NAME.overlay.png` | the whole picture, grey, with the evidence over it in red and blue |
| `--regions` | `NAME.geojson` | polygons around the strongest evidence, in pixels of the file |
| `--csv TABLE` | TABLE | a row for each picture |
"""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from torchsite.cli.explain_output import Answer
from torchsite.data.pictures import upright_rgb
from torchsite.files import csv_table, write_atomically
from torchsite.model.drawing import overlay
from torchsite.model.explanation import enlarge
from torchsite.model.regions import Placement, fitted_placement, strongest_regions, to_geojson
from torchsite.model.tiles import TiledExplanation

LONGEST = 1024
COLUMNS = (
    "picture", "prediction", "probability", "runner_up", "runner_up_probability", "class", "rather_than",
    "share_of_evidence", "deletion_check", "abstain", "error",
)  # fmt: skip


@dataclass
class ReadOut:
    """Writes the files of each picture, and at the end those about all of them."""

    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    overlay: bool = False
    regions: bool = False
    table: Path | None = None
    margin: float = 1.0
    rows: list[dict[str, Any]] = field(default_factory=list)

    def write(self, answer: Answer, line: dict[str, Any]) -> None:
        """The files of one picture; `line` is its row of the table."""
        self.rows.append(line)
        if not self.overlay and not self.regions:
            return
        target, pixels = answer.task.target, upright_rgb(answer.task.picture)
        height, width = pixels.shape[:2]
        if isinstance(answer.explanation, TiledExplanation):
            placement = Placement(scale=width / answer.heatmap.shape[1])
        else:
            placement = fitted_placement((width, height), self.shape, self.margin)
        if self.overlay:
            drawn = overlay(pixels, _over(answer.heatmap, placement, (height, width)))
            write_atomically(target.with_suffix(".overlay.png"), _png(drawn))
        if self.regions:
            about = {"picture": answer.task.picture.name, "class": self.classes[answer.classes[0]]}
            content = to_geojson(strongest_regions(answer.heatmap), placement, about)
            write_atomically(target.with_suffix(".geojson"), json.dumps(content))

    def failed(self, picture: Path, problem: str) -> None:
        """A picture that could not be read has a row as well."""
        self.rows.append({"picture": str(picture), "error": problem})

    def finish(self) -> None:
        """The table of all pictures."""
        if self.table is not None:
            rows = sorted(self.rows, key=lambda row: str(row["picture"]))
            cells = [[row.get(column) for column in COLUMNS] for row in rows]
            write_atomically(self.table, csv_table([COLUMNS, *cells]))


def _over(heatmap: Tensor, placement: Placement, size: tuple[int, int]) -> np.ndarray:
    """A map at its place in the file's picture; 0 where the model did not see the picture."""
    rows, cols = (max(1, round(placement.scale * side)) for side in heatmap.shape)
    spread = enlarge(heatmap[None, None], (rows, cols))[0, 0].numpy()
    whole = np.zeros(size)
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
