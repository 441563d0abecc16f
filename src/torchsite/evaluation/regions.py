"""Where the object is: given with the pictures, or known from how a data set was made; never guessed."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.evaluation.fingerprints import fingerprint
from torchsite.metrics import strokes
from torchsite.shapes import Heatmaps, Images

Regions = Callable[[Images], Heatmaps] | Heatmaps

# Data sets whose pictures are nothing but an object on black, so that what is bright is the object.
ON_BLACK = ("mnist", "mnist_sample", "fashion_mnist")


def known_regions(dataset: Dataset) -> Regions | None:
    """The regions that follow from how a data set was made; None for all others and for folders."""
    return strokes if dataset.name in ON_BLACK and not dataset.paths else None


def regions_of(regions: Regions | None, images: Images, first: int) -> Heatmaps | None:
    """The regions of a batch that begins with picture number `first`; None if none are known."""
    if isinstance(regions, Tensor):
        return regions[first : first + len(images)].to(images)
    return None if regions is None else regions(images)


def describe_regions(regions: Regions | None, dataset: Dataset) -> dict[str, Any]:
    """What a result keeps of regions given one by one; fails unless there is one for each picture."""
    if not isinstance(regions, Tensor):
        return {}
    if len(regions) < len(dataset):
        raise ConfigError(f"regions: expected one for each of {len(dataset)} pictures, got {len(regions)}")
    return {"regions": fingerprint(regions[: len(dataset)])}
