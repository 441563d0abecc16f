"""The steps of a study: what one measure finds of one explainer on one model is a file.

What is in the folder is taken as it is, and a file of other weights or settings is refused (`compare`).
Answers of the model are cached for the whole run, maps as long as an explainer's turn lasts.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from experiments.tables import IGNORANT, IGNORANT_MARK, Row
from torchsite.attribution import METHODS
from torchsite.data import Dataset
from torchsite.evaluation.cached import Cached
from torchsite.evaluation.compare import compare
from torchsite.evaluation.comparison import Cell
from torchsite.evaluation.methods import applies
from torchsite.evaluation.methods import options_of as usual_options
from torchsite.metrics import CONTROL_MAPS, Explainer
from torchsite.model import SITE, BlackBox, ImageClassifier
from torchsite.shapes import Heatmaps, Images, Labels
from torchsite.transforms import TransformFamily

log = logging.getLogger(__name__)

N_QUICK, N_QUICK_SLOW = 12, 4
ASK_OTHER_WEIGHTS = ("sanity",)  # which damages a copy of the model: a memory would answer for it

Explain = Callable[[Images, Labels], Tensor]
OptionsOf = Callable[[str, SITE | BlackBox], dict[str, Any]]


@dataclass(frozen=True)
class Explaining:
    """A row of a table: its name, its options, whether it is slow, how to explain a model with it."""

    name: str
    on: Callable[[nn.Module], Explain]
    options: Mapping[str, Any] = field(default_factory=dict)
    slow: bool = False
    passes: int = 1

    def maps(self, model: nn.Module) -> Cached:
        """Its maps of a model, with a memory; built when first asked, so that a refusal is a cell."""
        built: list[Explain] = []

        def explain(images: Images, classes: Labels) -> Tensor:
            if not built:
                built.append(self.on(model))
            return built[0](images, classes)

        return Cached(explain)


def same(name: str, maker: Explain) -> Explaining:
    """A map-maker that is the same for every model."""
    return Explaining(name, lambda model: maker)


@dataclass(frozen=True)
class Asked:
    """How a measure is asked: on how many pictures, in which poses, with which options.

    Slow methods get `slow` pictures (with 0 they are not asked), or as many as `passes` through the model
    pay for, and `slow_options` if there are any. Poses are those that the model has learnt, unless a
    `family` is given. `metric` is the measure's name where a study asks it twice.
    """

    usual: int
    slow: int | None = None
    passes: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    slow_options: Mapping[str, Any] | None = None
    n_transforms: int = 1
    family: TransformFamily | None = None
    metric: str = ""

    def of(self, explaining: Explaining, quick: bool = False) -> int:
        """The pictures that one explainer gets; in a slice a dozen, slow ones a few."""
        if not explaining.slow:
            return min(self.usual, N_QUICK) if quick else self.usual
        if quick:
            return min(self.usual, N_QUICK_SLOW if self.slow is None else min(self.slow, N_QUICK_SLOW))
        paid = self.usual if self.passes is None else max(self.passes // explaining.passes, 1)
        return min(self.usual, paid if self.slow is None else self.slow)


Measures = Mapping[str, Asked]


def row_of(cell: Cell, n_images: int) -> Row:
    """A row of a file: who explains, on how many pictures, at what cost, and what the measure found."""
    row: Row = {"method": cell.method, "n_images": n_images, "options": dict(cell.options)}
    if cell.reason is not None:
        row["reason"] = cell.reason
    else:
        row["ms_per_image"] = 1000 * cell.explain_seconds / cell.n_explained if cell.n_explained else None
        row["seconds"] = cell.seconds
    return row | {"metric": cell.metric, "values": cell.values}


def explainers(
    model: SITE | BlackBox, methods: Sequence[str] | None = None, options_of: OptionsOf = usual_options
) -> Iterator[Explaining]:
    """The rows for a model: its methods, those of few passes first, then those that know nothing of it."""
    asked = {*METHODS, *IGNORANT} if methods is None else set(methods)
    fast_first = sorted((name for name in METHODS if name in asked), key=lambda name: METHODS[name].passes)
    for name, method, options in rows_for(model, fast_first, options_of):
        known = METHODS[method]
        yield Explaining(name, partial(known, **options), options, known.is_slow(), known.passes)
    for name, maker in CONTROL_MAPS.items():
        if IGNORANT_MARK + name in asked:
            yield same(IGNORANT_MARK + name, maker)


def rows_for(
    model: SITE | BlackBox, methods: Iterable[str], options_of: OptionsOf = usual_options
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The rows of methods for one model: how each is called, its method, and the method's options."""
    for method in methods:
        if applies(method, model):
            yield method, method, options_of(method, model)
            if method == "self_explanation":
                assert isinstance(model, SITE)
                relative = not model.config.zero_sum
                other = "relative_explanation" if relative else "plain_explanation"
                yield other, method, {"relative": relative}


@dataclass(frozen=True, eq=False)
class Measuring:
    """One model, its pictures and the files of its steps.

    `title` begins the names of the files. With regions, one for each picture, measures that need the
    objects' are possible. Without `family`, poses are those that the model has learnt.
    """

    title: str
    model: nn.Module
    data: Dataset
    folder: Path
    regions: Heatmaps | None = None
    family: TransformFamily | None = None
    batch_size: int = 64

    @cached_property
    def answers(self) -> Cached:
        """The model with a memory for the whole run."""
        return Cached(self.model)

    def rows(
        self, explaining: Explaining, measures: Measures, quick: bool = False, maps: Cached | None = None
    ) -> Iterator[Row]:
        """What each measure found; finished files are taken as they are.

        `maps` are those of the explainer, if others ask for them as well.
        """
        maps = maps or explaining.maps(self.model)
        for name, asked in measures.items():
            started, n = time.monotonic(), min(asked.of(explaining, quick), len(self.data))
            if not n:
                continue
            metric, slow = asked.metric or name, explaining.slow and asked.slow_options is not None
            model = self.model if metric in ASK_OTHER_WEIGHTS else self.answers
            found = compare(
                model,
                data=self.data,
                methods={explaining.name: Explainer(maps, model, explaining.on)},
                metrics=[metric],
                family=asked.family or self.family or cast(ImageClassifier, self.model).config.family,
                n_transforms=asked.n_transforms,
                limit=n,
                batch_size=self.batch_size,
                regions=self.regions,
                method_options={explaining.name: explaining.options},
                metric_options={metric: (asked.slow_options if slow else asked.options) or {}},
                out=self.folder / f"{self.title}-{explaining.name}-{name}.json",
            )
            log.info("%s of %s, %s: %.0f s", name, explaining.name, self.title, time.monotonic() - started)
            yield row_of(replace(found.cells[0], method=explaining.name, metric=name), n)
