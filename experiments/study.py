"""A study is data: models × explainers × measures × pictures × columns.

One driver makes the steps, one file for each (`measuring.py`). Explainers are the methods, and after them the
map-makers that know nothing. A SITE model stands in the tables twice: with the maps that it shows, and with
the other kind that the same weights give (relative to all classes, or the paper's, which are not).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from matplotlib.figure import Figure
from torch import Tensor

from experiments.cache import save_result
from experiments.measuring import Measures, Measuring, explainers
from experiments.models import KINDS, Pair, pair_beside
from experiments.section import TITLES, Pictures, source
from experiments.tables import IGNORANT, Row, Table, lines_of
from torchsite.attribution import METHODS
from torchsite.configs import to_mapping
from torchsite.results import Result

Arrays = Mapping[str, Tensor]
Figures = Mapping[str, Figure]


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
