"""The front of any network, up to a layer: what it answers there, without running what comes after.

The layer is wrapped in a `Tap`, which hands over what it answers; the last one ends the pass. So the
network's own code runs, whatever it is, and no hook stays on it. What comes after the last tap is gone.
"""

from collections.abc import Sequence
from contextvars import ContextVar

import torch
from torch import Tensor, nn

from torchsite.errors import NotApplicableError
from torchsite.modes import evaluating
from torchsite.shapes import Features, Images

_HANDED_OVER: ContextVar[list[Tensor]] = ContextVar("handed over")


class _EndOfPass(Exception):  # not an error
    """All that is wanted was handed over."""


class Tap(nn.Module):
    """A layer that hands over what it answers, and ends the pass if it is the last."""

    def __init__(self, layer: nn.Module, last: bool) -> None:
        super().__init__()
        self.layer, self.last = layer, last

    def forward(self, *inputs: Tensor, **options: Tensor) -> Tensor:
        """What the layer answers; a copy goes on, lest the network change it in place."""
        maps: Tensor = self.layer(*inputs, **options)
        _HANDED_OVER.get().append(maps)
        if self.last:
            raise _EndOfPass
        return maps.clone()


class Cut(nn.Module):
    """A network up to the last of some layers, by name and in the order in which they run; changes it."""

    def __init__(self, network: nn.Module, layers: Sequence[str], images: Images) -> None:
        super().__init__()
        for name in layers:
            _replace(network, name, Tap(network.get_submodule(name), name == layers[-1]))
        self.network = network
        self._remove_what_follows(layers[-1], images)

    def forward(self, images: Images) -> list[Features]:
        """What the layers answer, in order."""
        maps: list[Features] = []
        token = _HANDED_OVER.set(maps)
        try:
            self.network(images)
        except _EndOfPass:
            return maps
        finally:
            _HANDED_OVER.reset(token)
        raise NotApplicableError("the network was not cut: its last layer did not run; name another")

    def _remove_what_follows(self, last: str, images: Images) -> None:
        """The pass ends inside the modules that hold the last layer: what has not run there never will."""
        ran = self._modules_that_run(images)
        steps = last.split(".")
        for n in range(len(steps)):
            parent = ".".join(steps[:n])
            for name, child in list(self.network.get_submodule(parent).named_children()):
                if not any(part in ran for part in child.modules()):
                    _replace(self.network, f"{parent}.{name}".strip("."), nn.Identity())

    def _modules_that_run(self, images: Images) -> set[nn.Module]:
        ran: set[nn.Module] = set()
        parts = list(self.network.modules())
        handles = [part.register_forward_pre_hook(lambda part, _: ran.add(part)) for part in parts]
        try:
            with torch.no_grad(), evaluating(self):
                self(images)
        finally:
            for handle in handles:
                handle.remove()
        return ran


def _replace(network: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(network.get_submodule(parent), last, module)
