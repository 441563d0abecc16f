"""What a baseline is: something that learns from a data set and names the classes of pictures."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Float32

from torchsite.data import Dataset
from torchsite.errors import ConfigError, ShapeError
from torchsite.extras import needed
from torchsite.shapes import Images, Labels

Rows = Float32[np.ndarray, "batch pixels"]


class Baseline(ABC):
    """A classifier of pictures; `seed` is all its randomness, `threads` how many cores it may use."""

    def __init__(self, *, seed: int = 0, threads: int = 1) -> None:
        if threads < 1:
            raise ConfigError(f"threads: expected at least 1, got {threads}")
        self.seed, self.threads = seed, threads
        self._shape: tuple[int, ...] | None = None

    def fit(self, data: Dataset) -> Self:
        """Learn from labelled pictures; whatever was learnt before is forgotten."""
        if not len(data):
            raise ConfigError(f"{data.title}: expected pictures to learn from, got none")
        self._fit(data)
        self._shape = tuple(data.images.shape[1:])
        return self

    def predict(self, images: Images) -> Labels:
        """The class of each picture; float images in [0, 1] of the shape learnt from."""
        if self._shape is None:
            raise ConfigError(f"this {type(self).__name__} has learnt nothing yet: call fit(data) first")
        if not images.is_floating_point() or tuple(images.shape[1:]) != self._shape:
            raise ShapeError(
                f"expected float images in [0, 1] of shape (batch, {', '.join(map(str, self._shape))}), "
                f"got {images.dtype} of shape {tuple(images.shape)}"
            )
        return self._predict(images) if len(images) else images.new_zeros(0, dtype=torch.int64)

    @abstractmethod
    def _fit(self, data: Dataset) -> None:
        """Learn from pictures of which there is at least one."""

    @abstractmethod
    def _predict(self, images: Images) -> Labels:
        """The classes of checked pictures."""


def rows_of(images: Images) -> Rows:
    """Pictures as rows of pixels, as numpy knows them."""
    return images.flatten(1).cpu().float().numpy()


def library(module: str, package: str) -> Any:
    """A module of an optional library; one that is missing is an error that says how to get it."""
    return needed(module, who="this baseline", install="torchsite[baselines]", package=package)
