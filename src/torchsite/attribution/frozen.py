"""The state of a model while a method explains it: eval mode, no parameter gradients; restored afterwards.

Meanwhile the model is in eval mode, no parameter has a gradient (so a backward pass only goes
to the pictures and never touches `.grad`), and no module overwrites its input (an in-place ReLU destroys the
very activations that most methods read).
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch import nn

from torchsite.shapes import Images


@contextmanager
def lent(model: nn.Module) -> Iterator[nn.Module]:
    """The model in that state; flags and hooks are restored module by module in `finally`."""
    modules = list(model.modules())
    flags = [(module, module.training, getattr(module, "inplace", None)) for module in modules]
    wanted = [(tensor, tensor.requires_grad) for tensor in chain(model.parameters(), model.buffers())]
    hooks = [(module, _hooks(module)) for module in modules]
    try:
        for module, _, inplace in flags:
            module.training = False
            if inplace is True:
                module.inplace = False  # type: ignore[assignment]
        for tensor, requires_grad in wanted:
            if requires_grad:
                tensor.requires_grad_(False)
        yield model
    finally:
        for tensor, requires_grad in wanted:
            if requires_grad:
                tensor.requires_grad_(True)
        for module, training, inplace in flags:
            module.training = training
            if inplace is True:
                module.inplace = True  # type: ignore[assignment]
        for module, before in hooks:
            _restore(module, before)


def faster_layout(model: nn.Module, images: Images) -> torch.memory_format:
    """Channels last, in which convolutions on a CPU take about half the time, if the model can take it.

    A model that flattens with `view` instead of `flatten` cannot; one picture is tried.
    """
    if images.device.type != "cpu":
        return torch.preserve_format
    try:
        with torch.no_grad():
            model(images[:1].detach().clone(memory_format=torch.channels_last))
    except RuntimeError:
        return torch.contiguous_format
    return torch.channels_last


def _hooks(module: nn.Module) -> dict[str, Any]:
    """A copy of everything on a module that a hook registration can change."""
    return {
        name: value.copy() if isinstance(value, OrderedDict) else value
        for name, value in vars(module).items()
        if "_hook" in name
    }


def _restore(module: nn.Module, before: dict[str, Any]) -> None:
    for name, value in before.items():
        now = vars(module)[name]
        if isinstance(value, OrderedDict):
            for key in now.keys() - value.keys():
                del now[key]
        elif now is not value:
            setattr(module, name, value)
