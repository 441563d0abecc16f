"""A study is data: models × explainers × measures × pictures. One driver makes its steps, one file for each.

What is in the folder is taken as it is; a file of other weights or settings is refused (`compare`).
Explainers are the methods, and after them the map-makers that know nothing. A SITE model stands in the tables
twice: with the maps that it shows, and with the other kind that the same weights give (relative to all
classes, or the paper's, which are not). Answers of the model are cached for the whole run, maps as long as an
explainer's turn lasts.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from experiments.cache import save_result
from experiments.models import KINDS, Pair, pair_beside
from experiments.section import Row
from torchsite.attribution import METHODS
from torchsite.configs import to_mapping
from torchsite.data import Dataset
from torchsite.evaluation.cached import Cached
from torchsite.evaluation.compare import compare
from torchsite.evaluation.comparison import Cell
from torchsite.evaluation.methods import applies
from torchsite.evaluation.methods import options_of as usual_options
from torchsite.metrics import CONTROL_MAPS, Explainer
from torchsite.model import SITE, BlackBox, ImageClassifier
from torchsite.results import Result
from torchsite.shapes import Heatmaps, Images, Labels
from torchsite.transforms import TransformFamily

log = logging.getLogger(__name__)

IGNORANT_MARK = "ignorant_"
IGNORANT = tuple(IGNORANT_MARK + name for name in CONTROL_MAPS)
N_QUICK, N_QUICK_SLOW = 12, 4
ASK_OTHER_WEIGHTS = ("sanity",)  # which damages a copy of the model: a memory would answer for it

Explain = Callable[[Images, Labels], Tensor]
OptionsOf = Callable[[str, SITE | BlackBox], dict[str, Any]]


@dataclass(frozen=True)
class Explaining:
    """A row of a table: its name, its options, whether it is slow, how to explain a model with it."""

    name: str
    options: Mapping[str, Any]
    slow: bool
    on: Callable[[nn.Module], Explain]
    passes: int = 1

    def maps(self, model: nn.Module) -> Cached:
        """Its maps of a model, with a memory; built when first asked, so that a refusal is a cell."""
        built: list[Explain] = []

        def explain(images: Images, classes: Labels) -> Tensor:
            if not built:
                built.append(self.on(model))
            return built[0](images, classes)

        return Cached(explain)


@dataclass(frozen=True)
class Amount:
    """How many pictures a measure shows: to most methods, and to those that ask the model many times.

    Slow methods get `slow` pictures (with 0 they are not asked), or as many as `passes` through the model
    pay for.
    """

    usual: int
    slow: int | None = None
    passes: int | None = None

    def of(self, explaining: Explaining, quick: bool = False) -> int:
        """The pictures that one explainer gets; in a slice a dozen, slow ones a few."""
        if not explaining.slow:
            return min(self.usual, N_QUICK) if quick else self.usual
        if quick:
            return min(self.usual, N_QUICK_SLOW if self.slow is None else min(self.slow, N_QUICK_SLOW))
        paid = self.usual if self.passes is None else max(self.passes // explaining.passes, 1)
        return min(self.usual, paid if self.slow is None else self.slow)


@dataclass(frozen=True)
class Study:
    """Measures of every explainer on both models of a recipe; `name` ends the name of the result.

    `slow_options` are those of measures where they meet slow methods.
    """

    name: str
    measures: Mapping[str, Amount]
    methods: tuple[str, ...] = (*METHODS, *IGNORANT)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    slow_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    n_transforms: Mapping[str, int] = field(default_factory=dict)  # where a measure meets more than one

    def run(
        self,
        recipe: str,
        folder: Path,
        *,
        methods: Sequence[str] | None = None,
        quick: bool = False,
        progress: bool = False,
    ) -> tuple[Result, Pair]:
        """The result with a table of plain rows, not yet saved, and the models that it is about."""
        started = time.monotonic()
        pair = pair_beside(recipe, folder, quick=quick, progress=progress)
        rows = [row_with(*line) for line in self.steps(pair, folder, methods=methods, quick=quick)]
        config = pair.description() | {"recipe": recipe, "quick": quick, "n_transforms": 1}
        config["family"] = to_mapping(pair.site.config.family)
        name = f"{recipe}_{self.name}"
        return Result(name, {"table": rows}, config, 0, time.monotonic() - started), pair

    def measure(
        self,
        recipe: str,
        folder: Path,
        *,
        models: Sequence[str] = KINDS,
        methods: Sequence[str] | None = None,
        quick: bool = False,
    ) -> int:
        """The steps of some of the models and methods, for a lane of its own; how many there are."""
        pair = pair_beside(recipe, folder, quick=quick)
        return sum(1 for _ in self.steps(pair, folder, models=models, methods=methods, quick=quick))

    def steps(
        self,
        pair: Pair,
        folder: Path,
        *,
        models: Sequence[str] = KINDS,
        methods: Sequence[str] | None = None,
        quick: bool = False,
    ) -> Iterator[tuple[str, int, Cell]]:
        """Every measure of every explainer on every model: the model's kind, how many pictures, the cell."""
        for kind, model in pair:
            if kind not in models:
                continue
            measuring = Measuring(kind, model, pair.test, folder / "steps", self.options, self.slow_options)
            measuring = replace(measuring, n_transforms=self.n_transforms)
            for explaining in explainers(model, self.methods if methods is None else methods):
                for n, cell in measuring.cells(explaining, self.measures, quick):
                    yield kind, n, cell


def saved(result: Result, folder: Path, arrays: Mapping[str, Tensor] | None = None, **values: Any) -> Result:
    """The result with these values in place of its own, written."""
    return save_result(replace(result, values={**result.values, **values}), folder, arrays)


def row_with(kind: str, n_images: int, cell: Cell, metric: str = "") -> Row:
    """A row of a file: who explains what, on how many pictures, at what cost, and what the measure found."""
    row: Row = {
        "model": kind,
        "method": cell.method,
        "n_images": n_images,
        "options": dict(cell.options),
    }
    if cell.reason is not None:
        row["reason"] = cell.reason
    else:
        row["ms_per_image"] = 1000 * cell.explain_seconds / cell.n_explained if cell.n_explained else None
        row["seconds"] = cell.seconds
    return row | {"metric": metric or cell.metric, "values": cell.values}


def without_values(row: Row) -> Row:
    """What a row begins with: for tables of one measure, which lay its scores beside it."""
    return {key: value for key, value in row.items() if key not in ("metric", "values")}


def explainers(
    model: SITE | BlackBox, methods: Sequence[str] | None = None, options_of: OptionsOf = usual_options
) -> Iterator[Explaining]:
    """The rows for a model: its methods, those of few passes first, then those that know nothing of it."""
    asked = {*METHODS, *IGNORANT} if methods is None else set(methods)
    fast_first = sorted((name for name in METHODS if name in asked), key=lambda name: METHODS[name].passes)
    for name, method, options in rows_for(model, fast_first, options_of):
        known = METHODS[method]
        yield Explaining(name, options, known.is_slow(), Built(method, options), known.passes)
    for name, maker in CONTROL_MAPS.items():
        if IGNORANT_MARK + name in asked:
            yield Explaining(IGNORANT_MARK + name, {}, False, Same(maker))


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
    """One model, its pictures and the files of its steps, and what the measures are asked with.

    `title` begins the names of the files; `slow_options` are those of measures where they meet slow methods.
    With regions, one for each picture, measures that need the objects' are possible. Without `family`, poses
    are those that the model has learnt.
    """

    title: str
    model: nn.Module
    data: Dataset
    folder: Path
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    slow_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    regions: Heatmaps | None = None
    n_transforms: Mapping[str, int] = field(default_factory=dict)
    family: TransformFamily | None = None
    batch_size: int = 64

    @cached_property
    def answers(self) -> Cached:
        """The model with a memory for the whole run."""
        return Cached(self.model)

    def cells(
        self,
        explaining: Explaining,
        measures: Mapping[str, Amount],
        quick: bool = False,
        maps: Cached | None = None,
    ) -> Iterator[tuple[int, Cell]]:
        """How many pictures each measure saw, and what it found; finished files are taken as they are.

        `maps` are those of the explainer, if others ask for them as well.
        """
        maps = maps or explaining.maps(self.model)
        options = {**self.options, **(self.slow_options if explaining.slow else {})}
        for metric, amount in measures.items():
            started, n = time.monotonic(), min(amount.of(explaining, quick), len(self.data))
            if not n:
                continue
            asked = self.model if metric in ASK_OTHER_WEIGHTS else self.answers
            found = compare(
                asked,
                data=self.data,
                methods={explaining.name: Explainer(maps, asked, explaining.on)},
                metrics=[metric],
                family=self.family or cast(ImageClassifier, self.model).config.family,
                n_transforms=self.n_transforms.get(metric, 1),
                limit=n,
                batch_size=self.batch_size,
                regions=self.regions,
                method_options={explaining.name: explaining.options},
                metric_options={metric: options.get(metric, {})},
                out=self.folder / f"{self.title}-{explaining.name}-{metric}.json",
            )
            log.info("%s of %s, %s: %.0f s", metric, explaining.name, self.title, time.monotonic() - started)
            yield n, replace(found.cells[0], method=explaining.name)


@dataclass(frozen=True)
class Built:
    """A method of the list, to be built on a model."""

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, model: nn.Module) -> Explain:
        """The method on this model."""
        return METHODS[self.method](model, **self.options)


@dataclass(frozen=True)
class Same:
    """A map-maker that is the same for every model."""

    maker: Explain

    def __call__(self, model: nn.Module) -> Explain:
        """The maker."""
        return self.maker
