"""What a result depends on, in short: checksums of weights and pictures, options as plain data."""

import hashlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


def fingerprint(*tensors: Tensor) -> str:
    """A short checksum of tensors: their types, shapes and contents."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(repr((tensor.dtype, tuple(tensor.shape))).encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def weights_of(*models: nn.Module) -> str:
    """The checksum of all weights of some models."""
    return fingerprint(*(tensor for model in models for tensor in model.state_dict().values()))


def describe_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as plain data: models by their weights, all else that JSON lacks by its text."""
    return {name: _describe(value) for name, value in options.items()}


def _describe(value: Any) -> Any:
    if isinstance(value, nn.Module):
        return {"model": type(value).__name__, "weights": weights_of(value)}
    if isinstance(value, list | tuple):
        return [_describe(item) for item in value]
    return (
        value
        if isinstance(value, str | int | float | bool | None)
        else getattr(value, "__name__", str(value))
    )
