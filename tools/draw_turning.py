"""The moving picture of the README: things turn, and explanations follow or do not.

Command:  python tools/draw_turning.py          (seconds; docs/pictures/turning.webp)

Things are explained by SITE and by Grad-CAM on the black box of the same recipe, both as they come with the
package: draw the film again when they change. Shown is the explanation of the turned picture, for the class
that the model sees in the upright one; the number is the cosine between it and the explanation of the upright
picture, turned. A blob in the middle of every picture has a high cosine too: do not show one as a success.
"""

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image

import torchsite as ts

sys.path.append(str(Path(__file__).parents[1]))  # where the experiments are

from experiments.shown import open_photograph
from torchsite.data import to_float
from torchsite.data.pictures import as_input, fitted
from torchsite.model.drawing import Raster, draw_tiles, heatmap_tile, picture_tile
from torchsite.shapes import Heatmaps, Images
from torchsite.transforms import AffineTransform

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "turning.webp"

# Recipe and picture: the first of a class among the embedded test digits, or a photograph of scikit-image.
SHOWN = (("mnist", "4"), ("mnist", "7"))
ANGLES = [*range(0, 90, 9), *range(90, -90, -9), *range(-90, 0, 9)]
MILLISECONDS = 130
MOST_BYTES = 1_500_000


@dataclass(frozen=True, eq=False)
class Turned:
    """One picture in all its poses, with both explanations of each pose and how alike they are."""

    pictures: Images
    maps: dict[str, Heatmaps]
    cosines: dict[str, list[float]]


def turned(image: Images, explainers: dict[str, object]) -> Turned:
    """A picture of batch one, turned by all angles."""
    turn = AffineTransform.rotation(torch.tensor(ANGLES, dtype=torch.float64))
    many = image.expand(len(ANGLES), -1, -1, -1)
    posed, maps, cosines = turn(many), {}, {}
    for name, (model, explain) in explainers.items():
        classes = model(image).argmax(1).expand(len(ANGLES))
        maps[name] = explain(posed, classes).detach()
        carried = turn(explain(many, classes).detach().unsqueeze(1)).squeeze(1)
        inside = turn.mask(many.shape[-2:]).reshape(carried.shape)
        both = [(inside * each).flatten(1) for each in (maps[name], carried)]
        cosines[name] = torch.cosine_similarity(*both).tolist()
    return Turned(posed, maps, cosines)


def frame(things: list[Turned], number: int) -> Image.Image:
    """All pictures at one angle: the picture, then each explanation with its likeness."""
    rows = [[cell for thing in things for cell in column(thing, number)]]
    figure = draw_tiles(rows, tile=1.25)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=72, facecolor="white")
    return Image.open(buffer).convert("RGB")


def column(thing: Turned, number: int) -> list[tuple[Raster, str]]:
    """The tiles of one picture."""
    cells = [(picture_tile(thing.pictures[number]), f"turned {ANGLES[number]}°")]
    for name, maps in thing.maps.items():
        limit = float(maps.abs().max())
        cells.append((heatmap_tile(maps[number], limit), f"{name}: {thing.cosines[name][number]:.2f}"))
    return cells


def pair(recipe: str) -> dict[str, object]:
    """Both models of a recipe with their explanations."""
    site, black_box = ts.SITE.from_pretrained(recipe), ts.BlackBox.from_pretrained(f"{recipe}_black_box")
    methods = ts.attribution.METHODS
    return {
        "SITE": (site, methods["self_explanation"](site)),
        "Grad-CAM": (black_box, methods["grad_cam"](black_box)),
    }


def open_picture(name: str) -> Images:
    """A digit or a photograph, as a batch of one."""
    digits = ts.load_dataset("mnist_sample", "test")
    if name in digits.classes:
        return to_float(digits.images[digits.labels == digits.classes.index(name)][:1])
    return as_input(fitted(open_photograph(name), 32), (3, 32, 32))[None]


def draw() -> bytes:
    """The film as an animated WebP."""
    shown = [turned(open_picture(name), pair(recipe)) for recipe, name in SHOWN]
    frames = [frame(shown, number) for number in range(len(ANGLES))]
    film = io.BytesIO()
    options = {"duration": MILLISECONDS, "loop": 0, "quality": 80, "method": 4}
    frames[0].save(film, "WEBP", save_all=True, append_images=frames[1:], **options)
    return film.getvalue()


if __name__ == "__main__":
    film = draw()
    assert len(film) <= MOST_BYTES, f"{len(film):,} bytes are too many: draw fewer angles"
    PICTURE.write_bytes(film)
