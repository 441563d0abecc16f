"""Photographs that come with scikit-image, explained by the CIFAR-10 model in two poses.

Claim:    pictures from elsewhere, shrunk to the model's size, are explained like its own, and the explanation
          moves with them. (The cat is a cat; a rocket and a motorcycle are no classes of CIFAR-10: theirs are
          the nearest.)
Command:  torchsite reproduce cifar10_photographs
Cost:     seconds. It needs scikit-image.
"""

import time
from importlib import import_module
from pathlib import Path

import torch
from matplotlib.figure import Figure
from PIL import Image

from experiments.cache import save_result
from experiments.models import pair_beside
from experiments.registry import Arrays
from experiments.section import Pictures, head
from experiments.shown import Shown, explained, sheet_of
from torchsite.data import Dataset
from torchsite.data.pictures import as_input, fitted
from torchsite.errors import ConfigError
from torchsite.model import SITE
from torchsite.report.format import markdown_table
from torchsite.results import Result
from torchsite.shapes import Pixels

# The photographs, and the class that each comes nearest to.
PHOTOGRAPHS = {"chelsea.png": "cat", "rocket.jpg": "airplane", "motorcycle_left.png": "automobile"}


class Photograph(Shown):
    """A picture that has a name."""

    photograph: str


def run(recipe: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Explain the photographs, each as it is and moved."""
    started = time.monotonic()
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    shown, arrays = explained(pair.site, photographs(pair.site), torch.arange(len(PHOTOGRAPHS)))
    named: list[Photograph] = [
        {**one, "photograph": name} for one, name in zip(shown, PHOTOGRAPHS, strict=True)
    ]
    config = pair.description() | {"recipe": recipe, "quick": quick, "source": "scikit-image"}
    result = Result(f"{recipe}_photographs", {"pictures": named}, config, 0, time.monotonic() - started)
    return save_result(result, folder, arrays)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """The photographs as they are and moved, their explanations laid over them."""
    return sheet_of(result, arrays)


def section(result: Result, pictures: Pictures) -> str:
    """What the photographs were taken for, in both poses."""
    shown: list[Photograph] = result.values["pictures"]
    rows = [
        [
            one["photograph"],
            one["predicted"],
            f"{one['probability']:.3f}",
            one["predicted when moved"],
            f"{one['self-consistency']:.3f}",
        ]
        for one in shown
    ]
    return (
        head(result, "photographs from elsewhere")
        + f"Photographs that come with {result.config['source']}, shrunk to the model's size; the rocket "
        "and the motorcycle belong to none of its classes.\n\n"
        + markdown_table(["photograph", "seen as", "probability", "moved, seen as", "cosine"], rows)
        + pictures.sheet(result.name, "Photographs as they are and moved, their explanations below")
    )


def photographs(model: SITE) -> Dataset:
    """The middle square of each photograph in the model's size; a class that the model lacks is its first."""
    images = torch.cat([_square(name, model.config.image_shape) for name in PHOTOGRAPHS])
    labels = [model.classes.index(c) if c in model.classes else 0 for c in PHOTOGRAPHS.values()]
    return Dataset(images, torch.tensor(labels), model.classes, "photographs")


def open_photograph(name: str, folder: str = "skimage.data", package: str = "scikit-image") -> Image.Image:
    """A photograph that comes with scikit-image, or with another package, in colour."""
    try:
        place = Path(str(import_module(folder).__file__)).parent
    except ImportError as error:
        raise ConfigError(
            f"{name} comes with {package}, which is missing ({error}): pip install {package}"
        ) from error
    with Image.open(place / name) as file:
        return file.convert("RGB")


def _square(name: str, shape: tuple[int, int, int]) -> Pixels:
    picture = as_input(fitted(open_photograph(name), max(shape[1:])), shape)
    return (picture[None] * 255).round().to(torch.uint8)
