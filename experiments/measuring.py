"""Many measures of every explainer of a model, a file for each: what the experiments on true maps share.

Explainers are the methods of the tables and, after them, the map-makers that know nothing. Hidden patches and
random rankings are the same for all of them, and several measures ask for the same maps: answers are
cached for the whole run (`Cached`), maps as long as an explainer's turn lasts.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from experiments.methods import OptionsOf, rows_for
from torchsite.attribution import METHODS
from torchsite.data import Dataset
from torchsite.evaluation.cached import Cached
from torchsite.evaluation.compare import compare
from torchsite.evaluation.comparison import Cell
from torchsite.evaluation.methods import options_of as usual_options
from torchsite.metrics import CONTROL_MAPS
from torchsite.model import SITE, BlackBox
from torchsite.shapes import Heatmaps, Images, Labels
from torchsite.transforms import TransformFamily

log = logging.getLogger(__name__)

IGNORANT_MARK = "ignorant_"

Explain = Callable[[Images, Labels], Tensor]


@dataclass(frozen=True)
class Explaining:
    """A row of a table: its name, its options, whether it is slow, and how to explain a model with it."""

    name: str
    options: Mapping[str, Any]
    slow: bool
    on: Callable[[nn.Module], Explain]


def explainers(
    model: SITE | BlackBox, methods: Sequence[str] | None = None, options_of: OptionsOf = usual_options
) -> Iterator[Explaining]:
    """The rows for a model: its methods, those of few passes first, then those that know nothing of it."""
    asked = {*METHODS, *(IGNORANT_MARK + name for name in CONTROL_MAPS)} if methods is None else set(methods)
    fast_first = sorted((name for name in METHODS if name in asked), key=lambda name: METHODS[name].passes)
    for name, method, options in rows_for(model, fast_first, options_of):
        yield Explaining(name, options, METHODS[method].is_slow(), _Built(method, options))
    for name, maker in CONTROL_MAPS.items():
        if IGNORANT_MARK + name in asked:
            yield Explaining(IGNORANT_MARK + name, {}, False, _Same(maker))


def capped(limits: Mapping[str, int], most: int | None) -> dict[str, int]:
    """How many pictures each measure gets if nobody may have more than `most`."""
    return {metric: n if most is None else min(n, most) for metric, n in limits.items()}


@dataclass(frozen=True, eq=False)
class Measuring:
    """The model, the pictures and the files of one table, and what the measures are asked with.

    `model` may have a memory; `explained` is the model that explainers are built on. `title` begins the names
    of the files; with regions, one for each picture, measures that need the objects' are possible.
    """

    title: str
    model: nn.Module
    explained: SITE | BlackBox
    data: Dataset
    folder: Path
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    regions: Heatmaps | None = None

    @property
    def family(self) -> TransformFamily:
        """The poses that the model has learnt."""
        return self.explained.config.family

    def cells(self, explaining: Explaining, limits: Mapping[str, int]) -> Iterator[tuple[int, Cell]]:
        """How many pictures each measure saw, and what it found; finished files are taken as they are."""
        cached = Cached(explaining.on(self.explained))
        for metric, n in limits.items():
            started = time.monotonic()
            found = compare(
                self.model,
                data=self.data,
                methods={explaining.name: cached},
                metrics=[metric],
                family=self.family,
                n_transforms=1,
                limit=n,
                regions=self.regions,
                method_options={explaining.name: explaining.options},
                metric_options={metric: self.options.get(metric, {})},
                out=self.folder / f"{self.title}-{explaining.name}-{metric}.json",
            )
            log.info("%s of %s, %s: %.0f s", metric, explaining.name, self.title, time.monotonic() - started)
            yield min(n, len(self.data)), replace(found.cells[0], method=explaining.name)


@dataclass(frozen=True)
class _Built:
    """A method of the list, to be built on a model."""

    method: str
    options: Mapping[str, Any]

    def __call__(self, model: nn.Module) -> Explain:
        """The method on this model."""
        return METHODS[self.method](model, **self.options)


@dataclass(frozen=True)
class _Same:
    """A map-maker that is the same for every model."""

    maker: Explain

    def __call__(self, model: nn.Module) -> Explain:
        """The maker."""
        return self.maker
