"""Networks of timm by name (`pip install 'torchsite[timm]'`): `timm/convnext_atto`, `timm/resnet18.a1_in1k`.

A network has maps of several *levels*, from fine to coarse (timm's `features_only`). Lateral sums bring the
chosen ones to the finest of them, and to `depth` features.

| option | means |
|---|---|
| `level` | a number or several, in timm's order, -1 the last; None: all of stride 8 or more |
| `weights` | "hub": timm's own, from its cache or the network; None: random ones |
| `fine_tuning` | the learning rate of pretrained weights as a share of the others'; 0: they stay |

Weights of a file: build the network with timm and pass it to `SITE.from_classifier`. Pictures are normalised
with the mean and deviation that timm names. Networks of one input size (most vision transformers) are built
for that of the model's pictures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from torchsite.errors import ConfigError, WeightsError
from torchsite.extras import needed
from torchsite.model.fine_tuned import FineTuned
from torchsite.shapes import Features, Images, Size

HUB = "hub"
USUAL_STRIDE = 8
Level = int | Sequence[int] | None


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
class TimmBackbone:
    """A network by its name in timm, with the tag of its weights or without, for pictures of some size."""

    name: str
    channels: int
    size: Size

    def __post_init__(self) -> None:
        if not timm().is_model(self.name):
            known = timm().list_models()
            near = get_close_matches(self.name, known, n=3, cutoff=0.4)
            hint = f": did you mean {', '.join(near)}?" if near else ""
            raise ConfigError(f"timm has no model {self.name!r} among its {len(known):,}{hint}")

    def strides(self) -> list[int]:
        """Pixels from one cell to the next, of every level, as timm lists them; no pass is needed."""
        with torch.device("meta"):
            return [level["reduction"] for level in self._create().feature_info.info]

    def build(self, levels: Sequence[int]) -> tuple[nn.Module, list[int]]:
        """A module that returns the maps of the levels, with random weights, and their depths."""
        network = self._create(out_indices=tuple(levels))
        return Levels(network), network.feature_info.channels()

    def weights(self, levels: Sequence[int]) -> dict[str, Tensor]:
        """timm's weights of what `build` gives."""
        try:
            network = self._create(out_indices=tuple(levels), pretrained=True)
        except Exception as error:  # which ones a failing network raises depends on the hub's version
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise WeightsError(
                f"the weights of timm/{self.name} are neither in the cache nor to be had "
                f"({type(error).__name__}: {reason}): start from random ones, "
                'extractor_options={"weights": None}, or pass a network with weights to SITE.from_classifier'
            ) from error
        return Levels(network).state_dict()

    def statistics(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and deviation that the weights were trained with; their means for pictures without colour."""
        per_colour = (self._config.mean, self._config.std)
        if self.channels == 3:
            return tuple(per_colour[0]), tuple(per_colour[1])
        mean, std = (sum(values) / len(values) for values in per_colour)
        return (mean,) * self.channels, (std,) * self.channels

    def takes_any_size(self) -> bool:
        """As timm lists it; False for transformers with learnt positions."""
        return not self._config.fixed_input_size

    @property
    def _config(self) -> Any:
        return timm().get_pretrained_cfg(self.name)

    def _create(self, **options: Any) -> Any:
        if self._config.fixed_input_size:
            options["img_size"] = self.size
        return timm().create_model(self.name, features_only=True, in_chans=self.channels, **options)


class TimmExtractor(FineTuned):
    """`timm/NAME`: the levels of a network, and lateral sums of them."""

    def __init__(
        self,
        name: str,
        channels: int,
        size: Size,
        depth: int = 16,
        level: Level = None,
        weights: str | None = HUB,
        fine_tuning: float = 0.1,
        common: int = 64,
    ) -> None:
        if weights not in (HUB, None):
            raise ConfigError(
                f'weights: expected "{HUB}" or None, got {weights!r}: build a network with other weights in '
                "timm and pass it to SITE.from_classifier"
            )
        backbone = TimmBackbone(name, channels, size)
        levels = chosen_levels(backbone.strides(), level)
        body, widths = backbone.build(levels)
        super().__init__(body, widths, depth, common, fine_tuning, has_learnt=weights is not None)
        self.backbone, self.levels = backbone, levels
        self.pretrained = weights is not None
        self.mean, self.std = backbone.statistics()

    def load_pretrained(self) -> None:
        """timm's weights; the lateral sums stay new."""
        self.body.load_state_dict(self.backbone.weights(self.levels))

    def stride(self, image_shape: tuple[int, int, int]) -> int | None:
        """As found by trying; None for a network that is built for one size."""
        return super().stride(image_shape) if self.backbone.takes_any_size() else None


def timm() -> ModuleType:
    """The library; without it an error that names what to install."""
    return needed("timm", who="a feature extractor of timm", install="torchsite[timm]")


def chosen_levels(strides: Sequence[int], level: Level) -> tuple[int, ...]:
    """The numbers of the levels, from fine to coarse; by default the last of each stride from 8 on."""
    n = len(strides)
    if level is None:
        last_of = {stride: number for number, stride in enumerate(strides)}
        wanted = [number for stride, number in last_of.items() if stride >= USUAL_STRIDE]
        return tuple(sorted(wanted)) or (n - 1,)
    asked = (level,) if isinstance(level, int) else tuple(level)
    if not asked or not all(isinstance(one, int) and -n <= one < n for one in asked):
        raise ConfigError(f"level: expected numbers from 0 to {n - 1} (strides {list(strides)}), got {level}")
    return tuple(sorted({one % n for one in asked}))
