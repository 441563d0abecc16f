"""Sample pictures: from the user's data set, else those kept here for a model, else digits or drawings.

The folder `sample_pictures/NAME` is for all models with the classes of the shipped model NAME; its files are
called "1 drawn airplane.png", "2 drawn ship.png" and so on. Models of other colour pictures get those of
`cifar10`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch.nn.functional import interpolate

from torchsite.data import Dataset, load_dataset, to_float
from torchsite.data.margins import centre, larger_size
from torchsite.data.pictures import as_input, fitted
from torchsite.model import shipped_models
from torchsite.model.config import ModelConfig
from torchsite.model.pretrained import read_config
from torchsite.shapes import Images
from torchsite.web.pictures import png
from torchsite.web.schemas import SampleOut

N_SAMPLES = 20
PICTURES = Path(__file__).with_name("sample_pictures")
COLOURS = "cifar10"  # the drawings for colour pictures of any classes


@dataclass(frozen=True, eq=False)
class Samples:
    """Named pictures in [0, 1], in the shape that one model takes."""

    names: tuple[str, ...]
    images: Images

    def __len__(self) -> int:
        return len(self.names)

    def described(self) -> list[SampleOut]:
        """The samples for the page."""
        pairs = zip(self.names, self.images, strict=True)
        return [SampleOut(index=i, name=name, image=png(image)) for i, (name, image) in enumerate(pairs)]


def samples_for(config: ModelConfig, datasets: Sequence[Dataset] = ()) -> Samples:
    """The first given data set with the model's classes or shape of pictures, else what the package has."""
    channels, height, width = config.image_shape
    same_classes = [data for data in datasets if set(data.classes) == set(config.classes)]
    same_shape = [data for data in datasets if tuple(data.images.shape[1:]) == tuple(config.image_shape)]
    for data in (*same_classes, *same_shape):
        if data.images.shape[1] == channels:
            return _of_dataset(data, (height, width), config.margin)
    folder = next((name for name in _folders() if _classes(name) == set(config.classes)), None)
    if folder is None and channels == 1:
        return _of_dataset(load_dataset("mnist_sample", "test"), (height, width))
    pictures = list(_kept(folder or COLOURS))
    side = larger_size(max(height, width), config.margin)
    images = [as_input(fitted(picture, side), config.image_shape) for _, picture in pictures]
    return Samples(tuple(name for name, _ in pictures), torch.stack(images))


def _folders() -> list[str]:
    return [name for name in shipped_models() if (PICTURES / name).is_dir()]


def _classes(name: str) -> set[str]:
    return set(read_config(shipped_models()[name]).classes)


def _kept(name: str) -> Iterator[tuple[str, Image.Image]]:
    for path in sorted((PICTURES / name).glob("*.png"), key=lambda path: int(path.stem.partition(" ")[0])):
        yield path.stem.partition(" ")[2], Image.open(path)


def _of_dataset(data: Dataset, size: tuple[int, int], margin: float = 1.0) -> Samples:
    """The first pictures of each class in turn; of pictures with a margin the centres."""
    height, width = size if data.larger is not None else (larger_size(side, margin) for side in size)
    rounds = -(-N_SAMPLES // len(data.classes))
    first = [(data.labels == label).nonzero()[:rounds, 0] for label in range(len(data.classes))]
    order = [int(rows[k]) for k in range(rounds) for rows in first if k < len(rows)][:N_SAMPLES]
    images = to_float(data.images[order])
    if tuple(images.shape[-2:]) != (height, width):
        images = interpolate(images, (height, width), mode="bilinear", antialias=True).clamp(0, 1)
    names = tuple(data.classes[int(data.labels[row])] for row in order)
    return Samples(names, centre(images, size).contiguous())
