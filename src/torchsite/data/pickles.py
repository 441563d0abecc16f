"""Read the CIFAR pickles without being able to execute anything from them.

A pickle may name any function of any module and call it. This reader knows four names, which the arrays of
CIFAR's batches need, and answers each with an inert stand-in; any other name is an error.
"""

import io
import pickle
import pickletools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from torchsite.errors import DataError


class _Bytes:
    """Stands for a uint8 array while the pickle is read; holds its state as plain data."""

    __slots__ = ("state",)
    state: tuple[Any, ...]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def array(self) -> np.ndarray:
        _, shape, dtype, fortran, content = self.state
        if not isinstance(dtype, _Dtype) or dtype.code != "u1" or fortran or not isinstance(content, bytes):
            raise DataError("expected arrays of uint8 in row-major order")
        return np.frombuffer(bytearray(content), np.uint8).reshape(shape)


class _Dtype:
    """Stands for a numpy dtype."""

    __slots__ = ("code",)

    def __init__(self, code: object) -> None:
        self.code = code.decode() if isinstance(code, bytes) else code

    def __setstate__(self, state: object) -> None:
        """Byte order and alignment mean nothing for single bytes."""


class _StandIn:
    """A callable without attributes, so that a pickle cannot alter it."""

    __slots__ = ("_answer",)
    _answer: Callable[..., object]

    def __init__(self, answer: Callable[..., object]) -> None:
        object.__setattr__(self, "_answer", answer)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be set")

    def __call__(self, *args: object) -> object:
        return self._answer(*args)


def _encode(text: object, codec: object) -> bytes:
    """Python 3 writes bytes into old pickles as latin-1 text."""
    if not isinstance(text, str) or codec not in ("latin1", b"latin1"):
        raise pickle.UnpicklingError("expected latin-1 text")
    return text.encode("latin1")


_RECONSTRUCT = _StandIn(lambda *_: _Bytes())
KNOWN: Mapping[tuple[str, str], _StandIn] = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): _StandIn(lambda *_: None),
    ("numpy", "dtype"): _StandIn(lambda code, *_: _Dtype(code)),
    ("_codecs", "encode"): _StandIn(_encode),
}


class _InertUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in KNOWN:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return KNOWN[module, name]


def load_inert(content: bytes, origin: str) -> dict[str, Any]:
    """The mapping in a CIFAR pickle, its arrays as uint8; a pickle that wants more than data is an error."""
    try:
        _check_memo(content)
        values = _InertUnpickler(io.BytesIO(content), encoding="bytes").load()
        if not isinstance(values, dict):
            raise DataError(f"expected a mapping, got {type(values).__name__}")
        return {_text(key): _plain(value) for key, value in values.items()}
    except Exception as error:  # a damaged pickle can fail in any way
        raise DataError(
            f"{origin} is not a plain CIFAR batch ({error}): nothing was executed from it; fetch it again"
        ) from error


def _check_memo(content: bytes) -> None:
    """A pickle numbers what it remembers, and Python makes room up to the largest: refuse a huge one."""
    for code, number, _ in pickletools.genops(content):
        if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= int(number or 0) <= len(content):
            raise pickle.UnpicklingError(f"it numbers a value {number}")


def _text(value: object) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def _plain(value: object) -> object:
    return value.array() if isinstance(value, _Bytes) else value
