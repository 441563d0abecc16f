"""A gallery on disk: `gallery.safetensors` beside the weights that it was made with, whose checksum it names.

To other weights a gallery says nothing, so it is refused there.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from torchsite.errors import WeightsError
from torchsite.files import write_atomically
from torchsite.model.gallery import MOST_CELLS, Drawn, Gallery

GALLERY_FILE = "gallery.safetensors"
TENSORS = {"pictures": torch.uint8, "labels": torch.int64, "keys": torch.float16}
ABOUT = ("source", "drawn", "weights")


def fingerprint(weights: Path) -> str:
    """Which weights a gallery belongs to: SHA-256 of their file."""
    with weights.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def save_gallery(gallery: Gallery, weights: Path) -> Path:
    """Write a gallery beside the weights that it was made with."""
    tensors = {name: getattr(gallery, name).to(kind).cpu().contiguous() for name, kind in TENSORS.items()}
    about = {"source": gallery.source, "drawn": gallery.drawn, "weights": fingerprint(weights)}
    return write_atomically(
        weights.with_name(GALLERY_FILE), lambda part: save_file(tensors, part, metadata=about)
    )


def load_gallery(
    weights: Path, feature_shape: tuple[int, ...], channels: int, n_classes: int
) -> Gallery | None:
    """The gallery beside some weights, if there is one; one that does not fit is an error."""
    path = weights.with_name(GALLERY_FILE)
    if not path.is_file():
        return None
    try:
        with safe_open(path, "pt") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} is damaged ({error}): make it anew with `torchsite gallery`") from error
    _check(path, tensors, about, feature_shape, channels, n_classes)
    if about["weights"] != fingerprint(weights):
        raise WeightsError(
            f"{path} was made with other weights than those beside it: make it anew with "
            f"`torchsite gallery`, or remove it"
        )
    return Gallery(**tensors, source=about["source"], drawn=about["drawn"])


def _check(
    path: Path,
    tensors: Mapping[str, Tensor],
    about: Mapping[str, str],
    feature_shape: tuple[int, ...],
    channels: int,
    n_classes: int,
) -> None:
    """Names, kinds and shapes must be those of a gallery of this model."""
    if {name: value.dtype for name, value in tensors.items()} != TENSORS or not set(ABOUT) <= about.keys():
        raise WeightsError(f"{path} is no gallery: expected {', '.join(TENSORS)}, got {', '.join(tensors)}")
    depth, *cells = feature_shape
    key = (depth, *(min(MOST_CELLS, side) for side in cells))
    pictures, labels, keys = (tensors[name] for name in TENSORS)
    fits = tuple(keys.shape[1:]) == key and pictures.ndim == 4 and pictures.shape[1] == channels
    if not fits or labels.ndim != 1 or not len(pictures) == len(labels) == len(keys) > 0:
        raise WeightsError(
            f"{path} does not fit its model: expected keys of {key} and pictures of {channels} channels, "
            f"got {tuple(keys.shape)} and {tuple(pictures.shape)}"
        )
    if labels.unique().tolist() != list(range(n_classes)) or not bool(keys.isfinite().all()):
        raise WeightsError(f"{path}: expected finite keys and exemplars of all {n_classes} classes")
    if about["drawn"] not in get_args(Drawn):
        raise WeightsError(f"{path}: expected drawn to be one of {get_args(Drawn)}, got {about['drawn']!r}")
