"""The steps of the board: one folder for each training, one file for each measure of each explainer.

    folder/models/DATA/ENTRY-SEED/             the run, as `fit` leaves it
    folder/steps/DATA/ENTRY-SEED-EXPLAINER-MEASURE.json

What is there is taken as it is. Lanes that work side by side take different entries, data sets or seeds.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from experiments.cache import step
from experiments.leaderboard.entries import ENTRIES, IGNORANT_MARK, Entry, OnModel, find
from experiments.leaderboard.fields import FIELDS, QUICK_FIELDS, Field, Pictures, within_budget
from experiments.recipes import is_finished
from torchsite.evaluation.cached import Cached
from torchsite.evaluation.compare import compare
from torchsite.evaluation.comparison import Cell
from torchsite.evaluation.fingerprints import weights_of
from torchsite.metrics import Explainer
from torchsite.model import ImageClassifier
from torchsite.model.pretrained import read_tensors
from torchsite.results import Result
from torchsite.training import fit

log = logging.getLogger(__name__)

SEEDS = (0, 1, 2)
FRACTIONS = (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "grid_pointing": {"confidence": 0.3, "sides": (2,)},
    "insertion": {"fractions": FRACTIONS},
    "deletion": {"fractions": FRACTIONS},
    "mask_k": {"fractions": FRACTIONS},
    "sanity": {"n_stages": 1},
}
ACCURACY = "accuracy"
N_ACCURACY = 1000
N_PICTURES: Mapping[str, int] = {
    "frame_control": 64,
    "patch_deletion": 64,
    "grid_pointing": 128,
    "mask_k": 64,
    "insertion": 64,
    "deletion": 64,
    "sanity": 32,
    "energy_pointing": 64,
}
N_SLOW = 16
N_QUICK = 8
COST = "cost"
N_TIMED, ROUNDS = 64, 5


@dataclass(frozen=True)
class Plan:
    """What is asked for: which entries on which data sets, with which seeds, in full or as a slice."""

    folder: Path
    entries: tuple[Entry, ...] = ENTRIES
    fields: tuple[Field, ...] = tuple(FIELDS.values())
    seeds: tuple[int, ...] = SEEDS
    quick: bool = False
    finished: bool = False  # whether only seeds count in which all models of a data set are trained

    def seeds_of(self, field: Field) -> tuple[int, ...]:
        """The seeds that count on a data set."""
        if not self.finished:
            return self.seeds
        return tuple(
            seed
            for seed in self.seeds
            if all(is_finished(self.model_folder(field, entry, seed)) for entry in self.entries)
        )

    def model_folder(self, field: Field, entry: Entry, seed: int) -> Path:
        """Where a training is."""
        return self.folder / "models" / field.name / f"{entry.name}-{seed}"

    def file(self, field: Field, entry: Entry, seed: int, explainer: str, measure: str) -> Path:
        """Where a step is."""
        return self.folder / "steps" / field.name / f"{entry.name}-{seed}-{explainer}-{measure}.json"


def plan(
    folder: Path,
    *,
    entries: Sequence[Entry] = ENTRIES,
    only: Sequence[str] = (),
    data: Sequence[str] = (),
    seeds: Sequence[int] = (),
    quick: bool = False,
    finished: bool = False,
) -> Plan:
    """The plan for some of the entries, data sets and seeds; all that are not named."""
    known = QUICK_FIELDS if quick else FIELDS
    fields = tuple(field for name, field in known.items() if name in data or not data)
    chosen = tuple(seeds) or (SEEDS[:2] if quick else SEEDS)
    asked = Plan(folder, find(only, entries), fields, chosen, quick, finished)
    return replace(asked, fields=tuple(field for field in fields if asked.seeds_of(field)))


def measure(folder: Path, **choice: Any) -> int:
    """The steps of some of the entries, data sets and seeds, for a lane of its own; how many there are."""
    return sum(1 for _ in all_steps(plan(folder, **choice)))


@dataclass(frozen=True)
class Line:
    """One measure of one explainer of one trained model."""

    field: str
    entry: str
    seed: int
    explainer: str
    n_images: int
    cell: Cell
    weights: str

    @property
    def model(self) -> str:
        """The trained model, by data set, entry and seed."""
        return f"{self.field}/{self.entry}-{self.seed}"


def weights_in(lines: Iterable[Line]) -> dict[str, str]:
    """The fingerprints of all models that were measured."""
    return {line.model: line.weights for line in lines}


def all_steps(asked: Plan, *, progress: bool = False) -> Iterator[Line]:
    """Train and measure whatever is not there yet; seed by seed, so that a stopped run has whole boards."""
    for field in asked.fields:
        pictures = field.load()
        for seed in asked.seeds_of(field):
            for entry in asked.entries:
                model = trained(asked, field, pictures, entry, seed, progress=progress)
                yield from measured(asked, field, pictures, entry, seed, model)


def trained(
    asked: Plan, field: Field, pictures: Pictures, entry: Entry, seed: int, *, progress: bool = False
) -> ImageClassifier:
    """The model of an entry after its training, from its folder if it is there."""
    config = field.config(seed=seed, terms=entry.terms)
    model = entry.build(pictures.train, config)
    folder = asked.model_folder(field, entry, seed)
    if not is_finished(folder):
        started = time.monotonic()
        chosen, data = within_budget(model, config, pictures.train, field.pmac)
        fit(model, data, chosen, validation=pictures.test, folder=folder, resume=True, progress=progress)
        log.info("%s on %s, seed %d: %.0f s", entry.name, field.name, seed, time.monotonic() - started)
    model.load_state_dict(read_tensors(folder / "model", dict(model.state_dict())))
    return model.eval()


def training_of(asked: Plan, field: Field, entry: Entry, seed: int) -> Result:
    """The result file of a training."""
    return Result.load(asked.model_folder(field, entry, seed) / "result.json")


def measured(
    asked: Plan, field: Field, pictures: Pictures, entry: Entry, seed: int, model: ImageClassifier
) -> Iterator[Line]:
    """Every measure of every explainer of a trained model."""
    answering, weights = Cached(model), weights_of(model)

    def line(explainer: str, metric: str, n: int, on: OnModel | None, kept: Cached | None) -> Line:
        path = asked.file(field, entry, seed, explainer, metric)
        asks_weights = metric == "sanity"
        asked_model: nn.Module = model if asks_weights else answering
        rows: Any = None
        if on is not None:
            rows = {explainer: Explainer(kept or on(model), asked_model, on)}
        found = compare(
            asked_model,
            data=pictures.test,
            methods=rows,
            metrics=[metric],
            family=model.config.family,
            n_transforms=1,
            limit=min(n, len(pictures.test)),
            regions=pictures.regions,
            metric_options={metric: OPTIONS.get(metric, {})},
            out=path,
        )
        cell = replace(found.cells[0], method=explainer)
        return Line(field.name, entry.name, seed, explainer, min(n, len(pictures.test)), cell, weights)

    n_all = 4 * N_QUICK if asked.quick else N_ACCURACY
    yield line("model", ACCURACY, n_all, None, None)
    for explainer, on in entry.explainers.items():
        kept = Cached(on(model))
        for metric, n in limits(asked, pictures, on).items():
            yield line(explainer, metric, n, on, kept)
        if not explainer.startswith(IGNORANT_MARK):
            found = cost(asked.file(field, entry, seed, explainer, COST), pictures, model, on)
            yield Line(field.name, entry.name, seed, explainer, len(pictures.test), found, weights)


def limits(asked: Plan, pictures: Pictures, on: OnModel) -> dict[str, int]:
    """How many pictures each measure gets: slow methods fewer; regions only where they are known."""
    slow = getattr(on, "is_slow", lambda: False)()
    most = N_QUICK if asked.quick else N_SLOW if slow else None
    return {
        metric: n if most is None else min(n, most)
        for metric, n in N_PICTURES.items()
        if metric != "energy_pointing" or pictures.regions is not None
    }


def cost(path: Path, pictures: Pictures, model: ImageClassifier, on: OnModel) -> Cell:
    """How long an explanation takes beside a forward pass: the median of turns taken one after the other."""
    images = pictures.test.images[:N_TIMED].float() / 255
    classes, explain = pictures.test.labels[:N_TIMED], on(model)
    slow = getattr(on, "is_slow", lambda: False)()
    shown, rounds = (8, 2) if slow else (len(images), ROUNDS)

    def find_ratio() -> dict[str, Any]:
        ratios, forwards = [], []
        for _ in range(1 + rounds):  # the first turn warms up
            with torch.no_grad():
                forward = _seconds(lambda: model(images[:shown]))
            ratios.append(_seconds(lambda: explain(images[:shown], classes[:shown])) / forward)
            forwards.append(1000 * forward / shown)
        return {"ratio": {"value": median(ratios[1:])}, "forward ms": {"value": median(forwards[1:])}}

    found = step(path, {"n": shown, "rounds": rounds}, find_ratio)
    return Cell("", COST, {}, found.values, seconds=found.seconds)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
