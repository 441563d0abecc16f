"""Evaluation mode as a context manager."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(module: nn.Module | None) -> Iterator[None]:
    """The module (if there is one) in evaluation mode; afterwards every part is in the mode it was in."""
    training = [part for part in module.modules() if part.training] if module is not None else []
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True
