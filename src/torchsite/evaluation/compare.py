"""METHODS × METRICS: one table of explanations of one model, cell by cell.

Every cell is a measure of a method on the same pictures in the same poses. A finished cell is written to the
result file at once, so an interrupted run continues where it stopped; a file made with other settings is
refused, not mixed. A method that does not apply to the model is a cell with the reason, not a crash.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from torchsite.attribution import METHODS, Attribution
from torchsite.configs import to_mapping
from torchsite.data import Dataset, load_dataset
from torchsite.errors import ConfigError, NotApplicableError, did_you_mean
from torchsite.evaluation.comparison import MODEL, Cell, Comparison
from torchsite.evaluation.feed import Regions, describe_regions, feed, known_regions
from torchsite.evaluation.fingerprints import describe_options, fingerprint, weights_of
from torchsite.metrics import METRICS, Explainer, Poses, as_explainer, plain
from torchsite.shapes import Images, Labels
from torchsite.transforms import TransformFamily

Watch = Callable[[str, int, int], None]


def compare(
    model: nn.Module,
    *,
    data: Dataset | str,
    methods: Sequence[str] | Mapping[str, Any] | None = None,
    metrics: Sequence[str] | None = None,
    family: TransformFamily | None = None,
    n_transforms: int = 4,
    seed: int = 0,
    limit: int | None = None,
    batch_size: int = 64,
    regions: Regions | None = None,
    method_options: Mapping[str, Mapping[str, Any]] | None = None,
    metric_options: Mapping[str, Mapping[str, Any]] | None = None,
    out: Path | str | None = None,
    resume: bool = True,
    watch: Watch | None = None,
) -> Comparison:
    """Measure methods of explaining `model` on the same pictures in the same poses; one cell for each pair.

    `methods` are names of METHODS, or a mapping from your own names to anything that `as_explainer` takes.
    Explained is the class that the model predicts on the untransformed picture (the pointing game: the true
    class). `regions` maps images to soft regions of the object, or holds one for each picture; those of MNIST
    and Fashion-MNIST are known. `out` is the result file that grows cell by cell; `watch(label, done, total)`
    is called after every batch.
    """
    dataset = _dataset(data, limit)
    poses = Poses(TransformFamily() if family is None else family, n_transforms, seed)
    options, how = metric_options or {}, method_options or {}
    rows = _methods(model, methods, how) | {MODEL: partial(as_explainer, _no_explanation, model)}
    columns = _metrics(metrics, options)
    config = _config(model, dataset, poses, batch_size) | describe_regions(regions, dataset)
    keys = [(MODEL, m) for m in columns if METRICS[m].of_model]
    keys += [(row, m) for row in rows for m in columns if row != MODEL and not METRICS[m].of_model]

    comparison = _previous(out, config, seed, resume)
    done = {(c.method, c.metric): c for c in comparison.cells if c.values is not None}
    places = known_regions(dataset) if regions is None else regions
    for number, (method, metric) in enumerate(keys):
        asked = options.get(metric, {})
        settings = _settings(metric, {**asked, **how.get(method, {})})
        if (method, metric) in done and done[method, metric].options == settings:
            continue
        empty = Cell(method, metric, settings)
        usual = {"poses": poses, "n_classes": len(dataset.classes), **asked}
        label, n = f"{metric} of {method}", len(dataset)
        told = None if watch is None else partial(_told, watch, label, number * n, len(keys) * n)
        cell = _measured(empty, rows[method], usual, dataset, batch_size, places, told)
        comparison = comparison.with_cell(cell)
        if out is not None:
            comparison.save(out)
    return comparison.only(keys)


class Stopwatch:
    """An explainer that counts its calls."""

    def __init__(self, explain: Callable[[Images, Labels], Tensor]) -> None:
        self.explain, self.seconds, self.n = explain, 0.0, 0

    def __call__(self, images: Images, classes: Labels) -> Tensor:
        """Explain, and note how long it took."""
        start = time.perf_counter()
        maps = self.explain(images, classes)
        self.seconds += time.perf_counter() - start
        self.n += len(images)
        return maps


def _measured(
    cell: Cell,
    build: Callable[[], Explainer],
    options: Mapping[str, Any],
    data: Dataset,
    batch_size: int,
    regions: Regions | None,
    told: Callable[[int], None] | None,
) -> Cell:
    """The cell filled; a method or measure that does not apply gives its reason."""
    start = time.perf_counter()
    try:
        explainer = build()
        stopwatch = Stopwatch(explainer.explain)
        measure = METRICS[cell.metric](replace(explainer, explain=stopwatch), **options)
        feed([measure], data, batch_size, regions=regions, told=told)
    except NotApplicableError as error:
        return replace(cell, reason=str(error), seconds=time.perf_counter() - start)
    return replace(
        cell,
        values=plain(measure.result()),
        seconds=time.perf_counter() - start,
        explain_seconds=stopwatch.seconds,
        n_explained=stopwatch.n,
    )


def _told(watch: Watch, label: str, done: int, total: int, seen: int) -> None:
    watch(label, done + seen, total)


def _dataset(data: Dataset | str, limit: int | None) -> Dataset:
    dataset = load_dataset(data, split="test") if isinstance(data, str) else data
    if limit is not None and limit < 1:
        raise ConfigError(f"limit: expected at least one picture, got {limit}")
    return dataset if limit is None else dataset[:limit]


def _methods(
    model: nn.Module,
    methods: Sequence[str] | Mapping[str, Any] | None,
    options: Mapping[str, Mapping[str, Any]],
) -> dict[str, Callable[[], Explainer]]:
    """How to build each row's explainer, once its turn comes."""
    if isinstance(methods, Mapping):
        return {name: partial(as_explainer, thing, model) for name, thing in methods.items()}
    names = list(METHODS) if methods is None else list(methods)
    for name in [*names, *options]:
        if name not in METHODS:
            raise ConfigError(f"no method {name!r}: {did_you_mean(name, METHODS)}")
    return {name: partial(_method, model, name, options.get(name, {})) for name in names}


def _method(model: nn.Module, name: str, options: Mapping[str, Any]) -> Explainer:
    def rebuild(other: nn.Module) -> Attribution:
        return METHODS[name](other, **options)

    return Explainer(rebuild(model), model, rebuild)


def _metrics(metrics: Sequence[str] | None, options: Mapping[str, Any]) -> list[str]:
    if metrics is None:
        return [
            name for name, kind in METRICS.items() if set(kind.needs_options) <= set(options.get(name, {}))
        ]
    for name in [*metrics, *options]:
        if name not in METRICS:
            raise ConfigError(f"no metric {name!r}: {did_you_mean(name, METRICS)}")
    return list(metrics)


def _settings(metric: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a cell, and which definition of its measure it has if that ever changed."""
    definition = METRICS[metric].definition
    return describe_options(options) | ({"definition": definition} if definition > 1 else {})


def _no_explanation(model: nn.Module, images: Images, classes: Labels) -> Tensor:
    raise NotApplicableError("measures of the model alone ask for no explanation")


def _config(model: nn.Module, dataset: Dataset, poses: Poses, batch_size: int) -> dict[str, Any]:
    """Everything that a cell depends on, as plain data."""
    return {
        "model": type(model).__name__,
        "weights": weights_of(model),
        "data": dataset.title,
        "pictures": fingerprint(dataset.images, dataset.labels),
        "n_images": len(dataset),
        "classes": list(dataset.classes),
        "family": to_mapping(poses.family),
        "n_transforms": poses.n,
        "batch_size": batch_size,
    }


def _previous(out: Path | str | None, config: dict[str, Any], seed: int, resume: bool) -> Comparison:
    """What an earlier run has found under the same settings; other settings are refused."""
    fresh = Comparison(config, seed)
    if out is None or not resume or not Path(out).exists():
        return fresh
    found = Comparison.load(out)
    here, there = {**config, "seed": seed}, {**found.config, "seed": found.seed}
    changed = [name for name in here if here[name] != there.get(name)]
    if changed:
        raise ConfigError(
            f"{out} holds a comparison with another {', '.join(changed)}: choose another file, "
            "or pass resume=False to begin anew"
        )
    return found
