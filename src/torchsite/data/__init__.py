"""Data sets as small values: whole uint8 tensors, integer labels, class names.

`load_dataset` opens every set of the catalogue and any folder with one sub-folder per class; `batches` looks
batches up in the whole tensors.
"""

from torchsite.data.as_images import ImagesLike, as_images
from torchsite.data.catalogue import CATALOGUE
from torchsite.data.dataset import Dataset, batches, larger_pictures, to_float
from torchsite.data.load import load_dataset

__all__ = [
    "CATALOGUE",
    "Dataset",
    "ImagesLike",
    "as_images",
    "batches",
    "larger_pictures",
    "load_dataset",
    "to_float",
]
