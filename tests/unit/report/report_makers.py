"""A tiny SITE, a tiny black box, and a few colour pictures that they have been examined on."""

import torch

from torchsite.data import Dataset
from torchsite.evaluation.examine import examine
from torchsite.model import SITE, BlackBox
from torchsite.transforms import TransformFamily

CLASSES = ("round", "a$_$b", "<b>odd</b>")  # neither a formula nor markup
COMMON = {
    "image_shape": (3, 16, 16),
    "classes": CLASSES,
    "extractor_options": {"widths": (2, 2, 2), "depth": 4},
}


def blobs(n=24, seed=0):
    """Pictures of noise whose brightest corner is their class; sorted, as folders are."""
    rng = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 80, (n, 3, 16, 16), generator=rng, dtype=torch.uint8)
    labels = torch.arange(n) % 3
    for label, corner in enumerate((slice(0, 6), slice(6, 11), slice(10, 16))):
        images[labels == label, :, corner, corner] += 150
    order = labels.argsort(stable=True)
    return Dataset(images[order], labels[order], CLASSES, "blobs", "test")


def site():
    torch.manual_seed(0)
    family = TransformFamily(max_rotation=30, max_shift=0.1)
    options = {"widths": (2, 2), "code": 4, "trunk": (2, 2)}
    return SITE("small_cnn", "lateral", 3, generator_options=options, family=family, **COMMON)


def black_box():
    torch.manual_seed(0)
    return BlackBox("small_cnn", 3, encoder_options={"widths": (2, 2), "code": 4}, **COMMON)


def examined(model, data, **options):
    return examine(model, data, limit=12, n_compared=6, n_transforms=1, **options)
