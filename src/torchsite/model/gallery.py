"""Prototypes of learned features as pictures: the training pictures that they fit best.

A prototype of learned features has no colours. What it looks for can be shown by pictures that have it: of
the exemplars x_e of class i, the one that the prototype, held against it, finds most evidence in,

    (e, s) = argmax  cos(w_i, S_s z_e),        z_e = F1(x_e)

S_s moves the features by whole cells: prototypes are drawn where the model looks for the class, exemplars
stand where they were photographed. What is shown is S_s x_e. Only shifts are searched; how far the
prototypes of a class are turned cannot be found from them (docs/design/galleries.md).

Features are averaged to at most 8 × 8 cells before they are compared. A gallery lies on disk beside the
weights that it was made with and has their checksum: with other weights it is refused.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from torchsite.errors import ShapeError, WeightsError
from torchsite.files import write_atomically
from torchsite.shapes import Features, Labels, Maps, Prototypes

MOST_CELLS = 8
GALLERY_FILE = "gallery.safetensors"
TENSORS = {"pictures": torch.uint8, "labels": torch.int64, "keys": torch.float16}
ABOUT = ("source", "drawn", "weights")
REACH = 4  # a place is looked for within this part of the side, to either hand

Drawn = Literal["photographs", "reconstructions"]
ClassPictures = Float[Tensor, "batch classes channels height width"]
Keys = Float[Tensor, "exemplars depth rows cols"]


@dataclass(frozen=True, eq=False)
class Nearest:
    """For each prototype an exemplar, how many cells it is moved (down, right), and the cosine of the two."""

    exemplars: Int[Tensor, "batch classes"]
    shifts: Int[Tensor, "batch classes 2"]
    likeness: Float[Tensor, "batch classes"]


@dataclass(frozen=True, eq=False)
class Gallery:
    """Exemplars of all classes; `source` is the name of their data set.

    `drawn`: the training pictures themselves, or reconstructions from their features by a small decoder, for
    pictures that must not be passed on.
    """

    pictures: UInt8[Tensor, "exemplars channels height width"]
    labels: Labels
    keys: Keys
    source: str
    drawn: Drawn = "photographs"

    def __post_init__(self) -> None:
        n = len(self.labels)
        if len(self.pictures) != n or len(self.keys) != n or n == 0:
            raise ShapeError(
                f"a gallery has as many pictures, labels and keys, at least one, got {len(self.pictures)}, "
                f"{n} and {len(self.keys)}"
            )
        if self.drawn not in get_args(Drawn):
            raise ShapeError(f"drawn: expected one of {', '.join(get_args(Drawn))}, got {self.drawn!r}")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def reach(self) -> tuple[int, int]:
        """How many cells an exemplar may be moved, up or down and to either side."""
        return reach_of(self.keys)

    def nearest(self, prototypes: Prototypes) -> Nearest:
        """For each prototype the exemplar of its class that it fits best, and where."""
        n_classes, (down, across) = prototypes.shape[1], self.reach
        keys, labels = self.keys.to(prototypes), self.labels.to(prototypes.device)
        queries = as_keys(prototypes.flatten(0, 1)).unflatten(0, prototypes.shape[:2])
        found = [_best(queries[:, i], keys, labels == i, (down, across)) for i in range(n_classes)]
        rows, places, scores = (torch.stack(part, dim=1) for part in zip(*found, strict=True))
        width = 2 * across + 1
        shifts = torch.stack([places // width - down, places % width - across], dim=2)
        return Nearest(rows, shifts, scores)

    def show(self, prototypes: Prototypes) -> ClassPictures:
        """The nearest exemplars, moved to where the prototypes look for their class; the rest is grey."""
        found = self.nearest(prototypes)
        return self.placed(found.exemplars.flatten(), found.shifts.flatten(0, 1)).unflatten(
            0, found.exemplars.shape
        )

    def placed(self, rows: Int[Tensor, " n"], shifts: Int[Tensor, "n 2"]) -> Maps:
        """Exemplars in [0, 1], moved by whole cells."""
        height, width = self.pictures.shape[-2:]
        cells = torch.tensor(self.keys.shape[-2:])
        steps = (shifts.cpu() * torch.tensor([height, width]) / cells).round().long()
        return torch.stack(
            [
                _moved(self.pictures[row], *step)
                for row, step in zip(rows.tolist(), steps.tolist(), strict=True)
            ]
        )


def as_keys(features: Features) -> Keys:
    """Features averaged to at most 8 × 8 cells, each picture's of length one."""
    rows, cols = (min(MOST_CELLS, side) for side in features.shape[-2:])
    averaged = F.adaptive_avg_pool2d(features, (rows, cols))
    return averaged / averaged.flatten(1).norm(dim=1).clamp_min(1e-12)[:, None, None, None]


def reach_of(keys: Keys) -> tuple[int, int]:
    """How many cells a key may be moved, down and across: a quarter of each side."""
    return keys.shape[-2] // REACH, keys.shape[-1] // REACH


def likeness(
    queries: Features, keys: Keys, reach: tuple[int, int]
) -> Float[Tensor, "batch exemplars places"]:
    """Cosines of all queries with all keys at all places; both have length one as a whole."""
    down, across = reach
    return F.conv2d(F.pad(queries, (across, across, down, down)), keys).flatten(2)


def _best(
    queries: Features, keys: Keys, own: Tensor, reach: tuple[int, int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Exemplar, place and cosine for the prototypes of one class."""
    rows = own.nonzero()[:, 0]
    if not len(rows):
        raise ShapeError("a class has no exemplar in the gallery: make one of pictures of all classes")
    scores = likeness(queries, keys[rows], reach)
    best = scores.flatten(1).argmax(1)
    n_places = scores.shape[2]
    return rows[best // n_places], best % n_places, scores.flatten(1).amax(1)


def _moved(picture: Tensor, down: int, right: int) -> Tensor:
    height, width = picture.shape[-2:]
    ground = torch.full_like(picture, 128, dtype=torch.float32)
    rows, cols = (slice(max(0, by), side + min(0, by)) for by, side in ((down, height), (right, width)))
    origin = tuple(slice(max(0, -by), side - max(0, by)) for by, side in ((down, height), (right, width)))
    ground[:, rows, cols] = picture[:, origin[0], origin[1]].float()
    return ground / 255


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
