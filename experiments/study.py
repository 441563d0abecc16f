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
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol, cast

from matplotlib.figure import Figure
from torch import Tensor, nn

from experiments.cache import save_result
from experiments.models import KINDS, Pair, pair_beside
from experiments.section import TITLES, Pictures, source
from experiments.tables import IGNORANT, IGNORANT_MARK, Row, Table, lines_of
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

Arrays = Mapping[str, Tensor]
Figures = Mapping[str, Figure]
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


@dataclass(frozen=True)
class Run:
    """One run of a study: the recipe whose models it is about, if any, where it is, what is asked for."""

    recipe: str
    folder: Path
    methods: Sequence[str]
    quick: bool = False
    progress: bool = False

    @property
    def steps(self) -> Path:
        """Where the steps are kept."""
        return self.folder / "steps"

    @cached_property
    def pair(self) -> Pair:
        """SITE and the black box of the recipe: those of the folder beside, or those that ship."""
        return pair_beside(self.recipe, self.folder, quick=self.quick, progress=self.progress)


class Subjects(Protocol):
    """The models of a study and the pictures that they are measured on."""

    def rows(self, measures: Measures, run: Run) -> Iterator[Row]:
        """Every measure of every explainer on every model; finished steps are taken as they are."""

    def description(self) -> Mapping[str, Any]:
        """What the result depends on, as plain data; the fingerprints of the weights among it."""


@dataclass(frozen=True, eq=False)
class OnPair:
    """SITE and the black box of a recipe, or one of them, and their test pictures."""

    pair: Pair
    models: Sequence[str] = KINDS

    @classmethod
    def of(cls, run: Run, models: Sequence[str] = KINDS) -> "OnPair":
        """The models of the recipe."""
        return cls(run.pair, models)

    def rows(self, measures: Measures, run: Run) -> Iterator[Row]:
        """Model by model, explainer by explainer."""
        for kind, model in self.pair:
            if kind in self.models:
                measuring = Measuring(kind, model, self.pair.test, run.steps)
                for explaining in explainers(model, run.methods):
                    for row in measuring.rows(explaining, measures, run.quick):
                        yield {"model": kind, **row}

    def description(self) -> Mapping[str, Any]:
        """The pictures, the weights, the poses."""
        family = to_mapping(self.pair.site.config.family)
        return self.pair.description() | {"family": family, "n_transforms": 1}


@dataclass(frozen=True)
class Found:
    """What a run has found: the values and arrays of its result, and what else belongs to its configuration.

    `seconds` are those of steps that may have been taken from files.
    """

    values: Mapping[str, Any]
    arrays: Arrays | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


Gather = Callable[[Sequence[Row], Any, Run], Found]
Keep = Callable[[Row], Mapping[str, Any]]


def as_lines(keep: Keep) -> Gather:
    """A result with one line for each explainer, of which this is kept of each row."""
    return lambda rows, subjects, run: Found({"table": kept(rows, keep)})


@dataclass(frozen=True)
class Study:
    """Measures of every explainer on models, and the tables and figures of what they find.

    In `name` and `title`, {} is the recipe. `on` finds the models: those of the recipe, unless it is given.
    `gather` makes the result of the rows; without it the file has the rows. A study that measures no
    explainers one by one has `find` in place of both. `text` is the section below its heading, if it is not
    the words, the tables, the notes and the links to figures. `shown` are the columns of the first table that
    are drawn; `draw` draws other charts, `show` what shows pictures of the data. `sheets` are the captions of
    those, `chart` is that of the chart; `command` runs the study, if it is not called as its result.
    """

    name: str
    title: str
    tables: Sequence[Table] = ()
    measures: Measures = field(default_factory=dict)
    methods: Sequence[str] = (*METHODS, *IGNORANT)
    quick_methods: Sequence[str] = ()  # of a slice, if not all
    on: Callable[..., Subjects] = OnPair.of
    gather: Gather = lambda rows, subjects, run: Found({"table": rows})
    find: Callable[[Run], Found] | None = None
    words: Callable[[Result], str] = lambda result: ""
    notes: Callable[[Result], str] = lambda result: ""
    text: Callable[[Result, Pictures], str] | None = None
    shown: Sequence[str] = ()
    draw: Callable[[Result, Arrays], Figures] | None = None
    show: Callable[[Result, Arrays], Figures] | None = None
    sheets: Callable[[Result], Mapping[str, str]] = lambda result: {}
    chart: str = ""
    command: str = ""

    def run(
        self,
        recipe: str,
        folder: Path,
        *,
        methods: Sequence[str] | None = None,
        quick: bool = False,
        progress: bool = False,
        **choice: Any,
    ) -> Result:
        """Measure every explainer on all models; finished steps are taken from `folder`.

        `choice` goes to `on`: which models, or whatever else can be chosen.
        """
        started, run = time.monotonic(), Run(recipe, folder, self._methods(methods, quick), quick, progress)
        found = self.find(run) if self.find else self._measured(run, choice)
        config = {**found.config, "quick": quick} | ({"recipe": recipe} if recipe else {})
        seconds = max(time.monotonic() - started, found.seconds)
        result = Result(self.name.format(recipe), found.values, config, 0, seconds)
        return save_result(result, folder, found.arrays)

    def measure(
        self,
        recipe: str,
        folder: Path,
        *,
        methods: Sequence[str] | None = None,
        quick: bool = False,
        **choice: Any,
    ) -> int:
        """The steps of some of the models and methods, for a lane of its own; how many there are."""
        run = Run(recipe, folder, self._methods(methods, quick), quick)
        return sum(1 for _ in self.on(run, **choice).rows(self.measures, run))

    def _measured(self, run: Run, choice: Mapping[str, Any]) -> Found:
        subjects = self.on(run, **choice)
        rows = list(subjects.rows(self.measures, run))
        found, seconds = self.gather(rows, subjects, run), sum(row.get("seconds", 0.0) for row in rows)
        config = {**subjects.description(), **found.config}
        return replace(found, config=config, seconds=max(found.seconds, seconds))

    def figures(self, result: Result, arrays: Arrays) -> Figures:
        """Charts, and sheets of pictures if there are arrays."""
        charts = {result.name: self.tables[0].drawn(lines_of(result), self.shown)} if self.shown else {}
        drawn = self.draw(result, arrays) if self.draw else charts
        return {**drawn, **(self.show(result, arrays) if self.show and arrays else {})}

    def section(self, result: Result, pictures: Pictures) -> str:
        """The heading, where the numbers come from, and what there is to say."""
        recipe = result.config.get("recipe", result.name.partition("_")[0])
        title = self.title.format(TITLES.get(recipe, recipe))
        above = f"{title}\n\n{source(result, self.command.format(recipe))}\n\n"
        if self.text is not None:
            return above + self.text(result, pictures)
        tables = "\n".join(table.text(result) for table in self.tables)
        links = [pictures.sheet(name, caption) for name, caption in self.sheets(result).items()]
        links += [pictures.chart(result.name, self.chart)] if self.chart else []
        return above + self.words(result) + tables + self.notes(result) + "".join(links)

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
