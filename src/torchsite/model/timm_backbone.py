"""Networks of timm (`pip install 'torchsite[timm]'`), through its own `features_only`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from torchsite.errors import WeightsError
from torchsite.model.libraries import Backbone, LibraryExtractor, imported, not_loaded, unknown_name
from torchsite.model.weight_files import read_weights
from torchsite.shapes import Features, Images


class Levels(nn.Module):
    """timm's list of maps, with the depth as the second axis whatever the network's own layout is."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.depth_is_last = "NHWC" in str(getattr(network, "output_fmt", ""))

    def forward(self, images: Images) -> list[Features]:
        """The maps of the levels, from fine to coarse."""
        maps = self.network(images)
        return [each.movedim(-1, 1) for each in maps] if self.depth_is_last else list(maps)


@dataclass(frozen=True)
class TimmBackbone(Backbone):
    """A network by its name in timm, with the tag of its weights or without: `resnet18.a1_in1k`."""

    def __post_init__(self) -> None:
        timm = imported("timm")
        if not timm.is_model(self.name):
            raise unknown_name("timm", self.name, timm.list_models())

    def strides(self) -> list[int]:
        """What timm says of itself; nothing is computed for it."""
        with torch.device("meta"):
            return [level["reduction"] for level in self._create().feature_info.info]

    def build(self, levels: Sequence[int]) -> tuple[nn.Module, list[int]]:
        """Without what comes after the last level."""
        network = self._create(out_indices=tuple(levels))
        return Levels(network), network.feature_info.channels()

    def weights(self, levels: Sequence[int], file: Path | None) -> dict[str, Tensor]:
        """timm translates between the names in files and those of its levels, and between channels."""
        if file is not None:
            return self._weights_of_file(tuple(levels), read_weights(file), file)
        try:
            network = self._create(out_indices=tuple(levels), pretrained=True)
        except Exception as error:  # which ones a failing network raises depends on the hub's version
            raise not_loaded(f"timm/{self.name}", error) from error
        return Levels(network).state_dict()

    def statistics(self) -> tuple[Sequence[float], Sequence[float]]:
        """As its weights were trained."""
        return self._config.mean, self._config.std

    def takes_any_size(self) -> bool:
        """Whether timm says so; transformers with learnt positions do not."""
        return not self._config.fixed_input_size

    @property
    def _config(self) -> Any:
        return imported("timm").get_pretrained_cfg(self.name)

    def _create(self, **options: Any) -> Any:
        if self._config.fixed_input_size:
            options["img_size"] = self.size
        return imported("timm").create_model(self.name, features_only=True, in_chans=self.channels, **options)

    def _weights_of_file(
        self, levels: tuple[int, ...], tensors: dict[str, Tensor], file: Path
    ) -> dict[str, Tensor]:
        """timm passes over what a file lacks: whatever is as random as before was not in it."""
        overlay = {"state_dict": tensors, "custom_load": False}
        options = {"pretrained": True, "pretrained_cfg_overlay": overlay}
        try:
            before, after = (self._seeded(out_indices=levels, **more) for more in ({}, options))
        except (RuntimeError, KeyError, ValueError) as error:
            reason = " ".join(str(error).split())[:300]
            raise WeightsError(f"{file} does not fit timm/{self.name}: {reason}") from error
        lacking = [
            name
            for name, drawn in before.items()
            if drawn.ndim > 1 and torch.equal(drawn, after[name]) and not _is_constant(drawn)
        ]
        if lacking:
            raise WeightsError(f"{file} does not fit timm/{self.name}: it lacks {', '.join(lacking[:5])}")
        return after

    def _seeded(self, **options: Any) -> dict[str, Tensor]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return Levels(self._create(**options)).state_dict()


def _is_constant(tensor: Tensor) -> bool:
    return bool((tensor == tensor.flatten()[0]).all())


class TimmExtractor(LibraryExtractor):
    """`timm/NAME`."""

    kind = TimmBackbone
