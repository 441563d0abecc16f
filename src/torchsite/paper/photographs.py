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
from PIL import Image

from torchsite.data import Dataset
from torchsite.data.pictures import as_input, fitted
from torchsite.errors import ConfigError
from torchsite.model import SITE
from torchsite.paper.models import pair_beside
from torchsite.paper.shown import explained, keep
from torchsite.results import Result
from torchsite.shapes import Pixels

# The photographs, and the class that each comes nearest to.
PHOTOGRAPHS = {"chelsea.png": "cat", "rocket.jpg": "airplane", "motorcycle_left.png": "automobile"}


def run(recipe: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Explain the photographs, each as it is and moved."""
    started = time.monotonic()
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    notes, arrays = explained(pair.site, photographs(pair.site), torch.arange(len(PHOTOGRAPHS)))
    for note, name in zip(notes, PHOTOGRAPHS, strict=True):
        note["photograph"] = name
    config = pair.description() | {"recipe": recipe, "quick": quick, "source": "scikit-image"}
    name = f"{recipe}_photographs"
    return keep(name, folder, {"pictures": notes}, config, arrays, time.monotonic() - started)


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
