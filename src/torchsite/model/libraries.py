"""Backbones of timm and torchvision by name: `timm/convnext_atto`, `torchvision/resnet18`.

The extra `torchsite[timm]` installs both libraries; nothing else here needs them. A backbone answers maps of
several *levels*, from fine to coarse. Lateral sums bring the chosen ones to the finest of them, and to
`depth` features; with `depth=None` one level is handed on as it is.

| option | means |
|---|---|
| `level` | a number or several, in the library's order, -1 the last; None: all of stride 8 or more |
| `weights` | "hub": the library's own, from its cache or the network; a file; None: random ones |
| `fine_tuning` | the learning rate of weights that have learnt, as a share of the others'; 0: they stay |

Normalisation is what the library says its weights were trained with. Networks that are built for one size
(most vision transformers) are built for that of the model's pictures.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from torch import Tensor, nn

from torchsite.errors import ConfigError, WeightsError
from torchsite.extras import needed
from torchsite.model.fine_tuned import FineTuned, Only
from torchsite.model.lateral_sum import LateralSum
from torchsite.shapes import Size

HUB = "hub"
USUAL_STRIDE = 8
Level = int | Sequence[int] | None


@dataclass(frozen=True)
class Backbone(ABC):
    """A network of a library by name, for pictures of some channels and size."""

    name: str
    channels: int
    size: Size

    @abstractmethod
    def strides(self) -> list[int]:
        """Pixels from one cell to the next, of every level from fine to coarse."""

    @abstractmethod
    def build(self, levels: Sequence[int]) -> tuple[nn.Module, list[int]]:
        """A module that answers a list of maps, those of the levels, and their depths; random weights."""

    @abstractmethod
    def weights(self, levels: Sequence[int], file: Path | None) -> dict[str, Tensor]:
        """The weights of what `build` gives, from a file or as the library publishes them."""

    @abstractmethod
    def statistics(self) -> tuple[Sequence[float], Sequence[float]]:
        """Mean and standard deviation per colour that the library's weights expect."""

    def takes_any_size(self) -> bool:
        """Whether the network is built for more than one size of pictures."""
        return True


class LibraryExtractor(FineTuned):
    """The levels of a backbone, and lateral sums of them; `kind` says of which library."""

    kind: ClassVar[type[Backbone]]

    def __init__(
        self,
        name: str,
        channels: int,
        size: Size,
        depth: int | None = 16,
        level: Level = None,
        weights: str | None = HUB,
        fine_tuning: float = 0.1,
        common: int = 64,
    ) -> None:
        backbone = self.kind(name, channels, size)
        levels = chosen_levels(backbone.strides(), level)
        if depth is None and len(levels) > 1:
            raise ConfigError(f"depth=None hands on one level as it is, but here are {len(levels)}: name one")
        body, widths = backbone.build(levels)
        answer = Only() if depth is None else LateralSum(widths, common, depth)
        super().__init__(body, answer, fine_tuning, has_learnt=weights is not None)
        self.backbone, self.levels, self.weights = backbone, levels, weights
        self.pretrained = weights is not None
        self.mean, self.std = (_per_channel(values, backbone.channels) for values in backbone.statistics())

    def load_pretrained(self) -> None:
        """The library's weights or those of a file; the lateral sums stay new."""
        file = None if self.weights in (HUB, None) else Path(str(self.weights)).expanduser()
        self.body.load_state_dict(self.backbone.weights(self.levels, file))

    def stride(self, image_shape: tuple[int, int, int]) -> int | None:
        """As found by trying; None for a network that is built for one size."""
        return super().stride(image_shape) if self.backbone.takes_any_size() else None


def chosen_levels(strides: Sequence[int], level: Level) -> tuple[int, ...]:
    """The numbers of the levels, from fine to coarse; unless told the last of each stride from 8 on."""
    n = len(strides)
    if level is None:
        last_of = {stride: number for number, stride in enumerate(strides)}
        wanted = [number for stride, number in last_of.items() if stride >= USUAL_STRIDE]
        return tuple(sorted(wanted)) or (n - 1,)
    asked = (level,) if isinstance(level, int) else tuple(level)
    if not asked or not all(isinstance(one, int) and -n <= one < n for one in asked):
        raise ConfigError(f"level: expected numbers from 0 to {n - 1} (strides {list(strides)}), got {level}")
    return tuple(sorted({one % n for one in asked}))


def imported(library: str, module: str = "") -> ModuleType:
    """A module of timm or torchvision; without it an error that says what to install."""
    return needed(module or library, who=f"a feature extractor of {library}", install="torchsite[timm]")


def unknown_name(library: str, name: str, known: Sequence[str]) -> ConfigError:
    """An error that names the nearest of very many."""
    near = get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f": did you mean {', '.join(near)}?" if near else ""
    return ConfigError(f"{library} has no model {name!r} among its {len(known):,}{hint}")


def not_loaded(name: str, error: Exception) -> WeightsError:
    """Published weights could not be had."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return WeightsError(
        f"the weights of {name} are neither in the cache nor to be had ({type(error).__name__}: {reason}): "
        'give a file, extractor_options={"weights": "….safetensors"}, or None to start from random ones'
    )


def _per_channel(values: Sequence[float], channels: int) -> tuple[float, ...]:
    """Those of the colours, or their mean for pictures of other channels."""
    return tuple(values) if channels == len(values) else (sum(values) / len(values),) * channels
