"""A study is data: models × explainers × measures × pictures × columns.

One driver makes the steps, one file for each; what is in the folder is taken as it is, and a file of other
weights or settings is refused (`compare`). Explainers are the methods, and after them the map-makers that
know nothing. A SITE model stands in the tables twice: with the maps that it shows, and with the other kind
that the same weights give (relative to all classes, or the paper's, which are not). Answers of the model are
cached for the whole run, maps as long as an explainer's turn lasts.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, cast

from matplotlib.figure import Figure
from torch import Tensor, nn

from experiments.cache import save_result
from experiments.models import KINDS, Pair, pair_beside
from experiments.section import Pictures, head
from experiments.tables import IGNORANT, IGNORANT_MARK, Row, Table, lines_of, notes_below
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

N_QUICK, N_QUICK_SLOW = 12, 4
ASK_OTHER_WEIGHTS = ("sanity",)  # which damages a copy of the model: a memory would answer for it

Explain = Callable[[Images, Labels], Tensor]
OptionsOf = Callable[[str, SITE | BlackBox], dict[str, Any]]
Options = Mapping[str, Mapping[str, Any]]


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


Amounts = Mapping[str, Amount]
Keep = Callable[[Row], Mapping[str, Any]]
Arrays = Mapping[str, Tensor]


class Subjects(Protocol):
    """The models of a study and the pictures that they are measured on."""

    def rows(
        self, study: "Study", folder: Path, models: Sequence[str], methods: Sequence[str], quick: bool
    ) -> Iterator[Row]:
        """Every measure of every explainer on every model; finished steps are taken from `folder`."""

    def description(self) -> Mapping[str, Any]:
        """What the result depends on, as plain data; the fingerprints of the weights among it."""


@dataclass(frozen=True, eq=False)
class OnPair:
    """SITE and the black box of a recipe, and its test pictures."""

    pair: Pair

    @classmethod
    def beside(cls, recipe: str, folder: Path, quick: bool, progress: bool) -> "OnPair":
        """The models of the experiment `recipe` beside the folder, or those that ship."""
        return cls(pair_beside(recipe, folder, quick=quick, progress=progress))

    def rows(
        self, study: "Study", folder: Path, models: Sequence[str], methods: Sequence[str], quick: bool
    ) -> Iterator[Row]:
        """Model by model, explainer by explainer."""
        asked = (study.options, study.slow_options, None, study.n_transforms)
        for kind, model in self.pair:
            if kind in models:
                measuring = Measuring(kind, model, self.pair.test, folder / "steps", *asked)
                for explaining in explainers(model, methods):
                    for row in measuring.rows(explaining, study.measures, quick):
                        yield {"model": kind, **row}

    def description(self) -> Mapping[str, Any]:
        """The pictures, the weights, the poses."""
        family = to_mapping(self.pair.site.config.family)
        return self.pair.description() | {"family": family, "n_transforms": 1}


@dataclass(frozen=True)
class Study:
    """Measures of every explainer on models, and the tables and figures of what they find.

    The result is called by the recipe and `name`. `on` finds the models: those of the recipe, unless it is
    given. `slow_options` are those of measures where they meet slow methods, `n_transforms` where a measure
    meets more than one. With `keep` the file has one line for each explainer, with what it keeps of each row;
    else it has the rows. `also` are other values of the result, and arrays for its figures. `shown` are the
    columns of the first table that are drawn, if there is no `draw`.
    """

    name: str
    title: str
    tables: Sequence[Table]
    measures: Amounts = field(default_factory=dict)
    methods: Sequence[str] = (*METHODS, *IGNORANT)
    quick_methods: Sequence[str] = ()  # of a slice, if not all
    on: Callable[[str, Path, bool, bool], Subjects] = OnPair.beside
    options: Options = field(default_factory=dict)
    slow_options: Options = field(default_factory=dict)
    n_transforms: Mapping[str, int] = field(default_factory=dict)
    keep: Keep | None = None
    also: Callable[[Any, Path], tuple[Mapping[str, Any], Arrays | None]] = lambda subjects, folder: ({}, None)
    words: Callable[[Result, Sequence[Row]], str] = lambda result, lines: ""
    notes: Callable[[Sequence[Row]], str] = notes_below
    shown: Sequence[str] = ()
    draw: Callable[[Result, Arrays], Mapping[str, Figure]] | None = None
    chart: str = ""

    def run(
        self,
        recipe: str,
        folder: Path,
        *,
        methods: Sequence[str] | None = None,
        quick: bool = False,
        progress: bool = False,
    ) -> Result:
        """Measure every explainer on all models; finished steps are taken from `folder`."""
        started = time.monotonic()
        subjects = self.on(recipe, folder, quick, progress)
        rows = list(subjects.rows(self, folder, KINDS, self._methods(methods, quick), quick))
        values, arrays = self.also(subjects, folder)
        values = {"table": rows if self.keep is None else kept(rows, self.keep), **values}
        config = {**subjects.description(), "recipe": recipe, "quick": quick}
        seconds = max(time.monotonic() - started, sum(row.get("seconds", 0.0) for row in rows))
        name = "_".join(filter(None, (recipe, self.name)))
        return save_result(Result(name, values, config, 0, seconds), folder, arrays)

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
        subjects = self.on(recipe, folder, quick, False)
        return sum(1 for _ in subjects.rows(self, folder, models, self._methods(methods, quick), quick))

    def figures(self, result: Result, arrays: Arrays) -> Mapping[str, Figure]:
        """Scores as points, unless the study draws its own."""
        if self.draw is not None:
            return self.draw(result, arrays)
        return {result.name: self.tables[0].drawn(lines_of(result), self.shown)} if self.shown else {}

    def section(self, result: Result, pictures: Pictures) -> str:
        """The words, the tables, the notes and the figure."""
        lines = lines_of(result)
        tables = "\n".join(table.text(lines) for table in self.tables)
        below = self.notes(result.values["table"])
        chart = pictures.chart(result.name, self.chart) if self.chart else ""
        return head(result, self.title) + self.words(result, lines) + tables + below + chart

    def _methods(self, methods: Sequence[str] | None, quick: bool) -> Sequence[str]:
        return methods if methods is not None else (quick and self.quick_methods) or self.methods


def kept(rows: Sequence[Row], keep: Keep) -> list[Row]:
    """One line for each explainer on each model, with what is kept of its rows."""
    lines: dict[tuple[str, str], Row] = {}
    for row in rows:
        about = {key: value for key, value in row.items() if key not in ("metric", "values", "part")}
        line = lines.setdefault((row["model"], row["method"]), about)
        if row["values"] is None:
            line["reason"] = row["reason"]
        else:
            merge(line, keep(row))
    return list(lines.values())


def merge(line: Row, found: Mapping[str, Any]) -> None:
    """Put what was found into a line; mappings into those that are there already."""
    for key, value in found.items():
        if isinstance(value, Mapping) and isinstance(line.get(key), dict):
            merge(line[key], value)
        else:
            line[key] = dict(value) if isinstance(value, Mapping) else value


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
        yield Explaining(name, Built(method, options), options, known.is_slow(), known.passes)
    for name, maker in CONTROL_MAPS.items():
        if IGNORANT_MARK + name in asked:
            yield Explaining(IGNORANT_MARK + name, Same(maker))


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
    options: Options = field(default_factory=dict)
    slow_options: Options = field(default_factory=dict)
    regions: Heatmaps | None = None
    n_transforms: Mapping[str, int] = field(default_factory=dict)
    family: TransformFamily | None = None
    batch_size: int = 64

    @cached_property
    def answers(self) -> Cached:
        """The model with a memory for the whole run."""
        return Cached(self.model)

    def rows(
        self, explaining: Explaining, measures: Amounts, quick: bool = False, maps: Cached | None = None
    ) -> Iterator[Row]:
        """What each measure found; finished files are taken as they are.

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
            yield row_of(replace(found.cells[0], method=explaining.name), n)


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
