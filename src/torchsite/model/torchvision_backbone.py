"""Networks of torchvision (`pip install 'torchsite[timm]'`), cut where their resolution changes.

A level is the last layer of a resolution that everything passes through: `layer1` to `layer4` of a ResNet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from torchsite.errors import ConfigError, WeightsError
from torchsite.layers import Shape, spatial_layers
from torchsite.model.cut import cut
from torchsite.model.libraries import Backbone, LibraryExtractor, imported, not_loaded, unknown_name
from torchsite.model.weight_files import read_weights
from torchsite.modes import evaluating

SIDE = 256  # of the picture that tells the levels; every network takes it


@dataclass(frozen=True)
class TorchvisionBackbone(Backbone):
    """A classifier by its name in torchvision; its weights are the ones torchvision calls the best."""

    def __post_init__(self) -> None:
        models = imported("torchvision", "torchvision.models")
        known = models.list_models(module=models)
        if self.name not in known:
            raise unknown_name("torchvision", self.name, known)
        if self.name.startswith("vit_"):
            raise ConfigError(
                f"torchvision/{self.name} answers tokens, not maps: take one of timm's, timm/vit_…"
            )
        if self.channels != 3:
            raise ConfigError(
                f"torchvision/{self.name} takes three channels, got {self.channels}: timm's networks take any"
            )

    def strides(self) -> list[int]:
        """From fine to coarse."""
        return [SIDE // shape[1] for shape in levels_of(self.name).values()]

    def build(self, levels: Sequence[int]) -> tuple[nn.Module, list[int]]:
        """Without what comes after the last level."""
        layers = list(levels_of(self.name).items())
        names, depths = [layers[n][0] for n in levels], [layers[n][1][0] for n in levels]
        return cut(create(self.name), names), depths

    def weights(self, levels: Sequence[int], file: Path | None) -> dict[str, Tensor]:
        """The classifier is filled first, then cut."""
        names = [list(levels_of(self.name))[n] for n in levels]
        network = create(self.name)
        if file is None:
            network.load_state_dict(self._published())
        else:
            _fill(network, read_weights(file), file, f"torchvision/{self.name}")
        return cut(network, names).state_dict()

    def statistics(self) -> tuple[Sequence[float], Sequence[float]]:
        """As its weights were trained."""
        preset = self._best.transforms()
        return preset.mean, preset.std

    @property
    def _best(self) -> Any:
        return imported("torchvision", "torchvision.models").get_model_weights(self.name).DEFAULT

    def _published(self) -> dict[str, Tensor]:
        try:
            return dict(self._best.get_state_dict(progress=False, check_hash=True, weights_only=True))
        except Exception as error:  # which ones a failing network raises depends on many things
            raise not_loaded(f"torchvision/{self.name}", error) from error


def create(name: str) -> nn.Module:
    """The classifier, with random weights."""
    network: nn.Module = imported("torchvision", "torchvision.models").get_model(name, weights=None)
    return network


@cache
def levels_of(name: str) -> dict[str, Shape]:
    """The levels by the names of their layers, with depth, rows and columns for the trial picture."""
    with torch.device("meta"):
        network = create(name)
        with evaluating(network):
            found = spatial_layers(network, torch.zeros(1, 3, SIDE, SIDE))
    square = {layer: shape for layer, shape in found.items() if shape[1] == shape[2] and SIDE % shape[1] == 0}
    last_of = {shape[1]: layer for layer, shape in square.items()}
    return {layer: square[layer] for _, layer in sorted(last_of.items(), reverse=True)}


def _fill(network: nn.Module, tensors: dict[str, Tensor], file: Path, title: str) -> None:
    """All but the last layer must be there: how many classes a file knows does not matter."""
    own = network.state_dict()
    heads = {name for name in own if name in tensors and own[name].shape != tensors[name].shape}
    heads |= own.keys() - tensors.keys()
    *_, last = own
    allowed = {name for name in own if name.rpartition(".")[0] == last.rpartition(".")[0]}
    if not heads <= allowed or not tensors.keys() <= own.keys():
        wrong = sorted((heads - allowed) | (tensors.keys() - own.keys()))
        raise WeightsError(f"{file} does not fit {title}: look at {', '.join(wrong[:5])}")
    network.load_state_dict({name: t for name, t in tensors.items() if name not in heads}, strict=False)


class TorchvisionExtractor(LibraryExtractor):
    """`torchvision/NAME`."""

    kind = TorchvisionBackbone
