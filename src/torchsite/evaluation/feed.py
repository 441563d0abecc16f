"""Pictures for measures, batch by batch, and where the objects on them are, as far as that is known.

Regions are given with the pictures, or known from how a data set was made; they are never guessed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchsite.data import Dataset, batches, larger_pictures
from torchsite.errors import ConfigError
from torchsite.evaluation.fingerprints import fingerprint
from torchsite.metrics import Measure, strokes
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


def feed(
    measures: Sequence[Measure],
    data: Dataset,
    batch_size: int,
    *,
    regions: Regions | None = None,
    n_probed: int | None = None,
    told: Callable[[int], None] | None = None,
) -> None:
    """Update measures of one model with all pictures, those that probe it with the first `n_probed` only.

    The explained class is the one predicted on the picture as it is. `told` is called after each batch
    with the number of pictures seen.
    """
    explainer, seen = measures[0].explainer, 0
    device = next((p.device for p in explainer.require_model().parameters()), torch.device("cpu"))
    for images, labels in batches(data, batch_size, device=device):
        classes, indices = explainer.predict(images), torch.arange(seen, seen + len(images))
        where = regions_of(regions, images, seen)
        some = slice(None if n_probed is None else max(n_probed - seen, 0))
        for measure in measures:
            if not measure.probes:
                measure.update(images, labels, classes, indices, where)
            elif len(indices[some]):
                around = larger_pictures(data, indices[some], device)
                measure.update(images[some], labels[some], classes[some], indices[some], padded=around)
        seen += len(images)
        if told is not None:
            told(seen)
