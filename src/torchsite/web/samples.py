"""Sample pictures: from the user's data set, else digits, else photographs and drawings.

No photographs are kept here: those offered to models of colour pictures are the ones that matplotlib,
scikit-learn and scikit-image carry for their own examples, as far as these are installed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import torch
from PIL import Image
from torch.nn.functional import interpolate

from torchsite.data import CATALOGUE, Dataset, load_dataset, to_float
from torchsite.data.margins import centre, larger_size
from torchsite.data.pictures import as_input, fitted
from torchsite.model.config import ModelConfig
from torchsite.shapes import Images

N_SAMPLES = 20
PHOTOGRAPHS = (
    ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg", "portrait"),
    ("sklearn", "datasets/images/flower.jpg", "flower"),
    ("sklearn", "datasets/images/china.jpg", "temple"),
    ("skimage", "data/chelsea.png", "cat"),
    ("skimage", "data/rocket.jpg", "rocket"),
    ("skimage", "data/motorcycle_left.png", "motorcycle"),
    ("skimage", "data/coffee.png", "coffee"),
)


@dataclass(frozen=True, eq=False)
class Samples:
    """Named pictures in [0, 1], in the shape that one model takes."""

    names: tuple[str, ...]
    images: Images

    def __len__(self) -> int:
        return len(self.names)


def samples_for(config: ModelConfig, datasets: Sequence[Dataset] = ()) -> Samples:
    """The first given data set with the model's classes or shape of pictures, else what the package has."""
    channels, height, width = config.image_shape
    same_classes = [data for data in datasets if set(data.classes) == set(config.classes)]
    same_shape = [data for data in datasets if tuple(data.images.shape[1:]) == tuple(config.image_shape)]
    for data in (*same_classes, *same_shape):
        if data.images.shape[1] == channels:
            return _of_dataset(data, (height, width), config.margin)
    if channels == 1 and set(config.classes) == set(CATALOGUE["fashion_mnist"].classes):
        return _of_pictures(_drawings("clothes"), config)
    if channels == 1:
        return _of_dataset(load_dataset("mnist_sample", "test"), (height, width))
    return _of_pictures([*_drawings("things"), *_photographs()], config)


def _of_dataset(data: Dataset, size: tuple[int, int], margin: float = 1.0) -> Samples:
    """The first pictures of each class in turn; of pictures with a margin the centres."""
    height, width = size if data.larger is not None else (larger_size(side, margin) for side in size)
    rounds = -(-N_SAMPLES // len(data.classes))
    first = [(data.labels == label).nonzero()[:rounds, 0] for label in range(len(data.classes))]
    order = [int(rows[k]) for k in range(rounds) for rows in first if k < len(rows)][:N_SAMPLES]
    names = tuple(data.classes[int(data.labels[row])] for row in order)
    return Samples(names, centre(_resized(to_float(data.images[order]), (height, width)), size).contiguous())


def _of_pictures(pictures: list[tuple[str, Image.Image]], config: ModelConfig) -> Samples:
    shape, side = config.image_shape, larger_size(max(config.image_shape[1:]), config.margin)
    images = [as_input(fitted(picture, side), shape) for _, picture in pictures]
    return Samples(tuple(name for name, _ in pictures), torch.stack(images))


def _resized(images: Images, size: tuple[int, int]) -> Images:
    if tuple(images.shape[-2:]) == size:
        return images
    return interpolate(images, size=size, mode="bilinear", antialias=True, align_corners=False).clamp(0, 1)


def _drawings(kind: str) -> list[tuple[str, Image.Image]]:
    """Our own drawings of things or clothes, in the order of their numbers."""
    files = sorted(Path(__file__).with_name("drawings").joinpath(kind).glob("*.png"))
    return [(path.stem.partition(" ")[2], Image.open(path)) for path in files]


def _photographs() -> Iterator[tuple[str, Image.Image]]:
    for package, path, name in PHOTOGRAPHS:
        try:
            file = Path(str(resources.files(package))) / path
            with Image.open(file) as picture:
                yield name, picture.convert("RGB")
        except (ModuleNotFoundError, OSError):
            continue
