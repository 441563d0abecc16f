"""Errors: each message has what was expected, what came, and what to do.

Every error that torchsite raises on purpose is a `TorchsiteError`; the subclasses also derive from the
built-in error a Python programmer would expect, so `except ValueError` keeps working.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class TorchsiteError(Exception):
    """Any error raised on purpose by torchsite."""


class ShapeError(TorchsiteError, ValueError):
    """A tensor has a shape, dtype or content that the operation cannot take."""


class ConfigError(TorchsiteError, ValueError):
    """A configuration has an unknown field or a value out of range."""


class DataError(TorchsiteError):
    """A data set is missing, damaged or unusable."""


class WeightsError(TorchsiteError):
    """A weights folder is missing, damaged or does not fit its configuration."""


class NotApplicableError(TorchsiteError):
    """A method is not defined for this model; the message names the module that is the reason."""


class TrainingError(TorchsiteError):
    """Training stopped because going on would have been pointless: divergence or collapse."""


class StoppedError(TorchsiteError):
    """Training was stopped by SIGTERM or SIGINT (Ctrl+C) and wrote a checkpoint to resume from."""

    def __init__(self, message: str, signal: int = 15) -> None:
        super().__init__(message)
        self.signal = signal


class MissingExtraError(TorchsiteError, ImportError):
    """A package of one of torchsite's extras is missing; the message names the extra."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The tail of an "unknown name" message: the nearest known name, then all of them."""
    names = sorted(known)
    near = get_close_matches(word, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}known: {', '.join(names)}"
