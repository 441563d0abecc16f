"""Everything that a report of one model shows, found once and kept as one result.

Command:  torchsite report MODEL DATA
Cost:     2,000 MNIST pictures under two transforms, five methods on 200 of them: about a minute on two cores.

The pictures are a random sample in random order, whatever order the data has: batches of one class would
raise the mismatched floor. Row numbers in the result are those of the data that was passed.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from torchsite.configs import to_mapping
from torchsite.data import Dataset, batches
from torchsite.errors import DataError
from torchsite.evaluation.answers import Answers, describe_answers, one_of_each
from torchsite.evaluation.compare import Watch, compare
from torchsite.evaluation.comparison import Comparison
from torchsite.evaluation.evaluate import N_PROBED, evaluate
from torchsite.evaluation.methods import applies, options_of
from torchsite.evaluation.training_log import read_log
from torchsite.metrics import Poses
from torchsite.model import SITE, BlackBox
from torchsite.model.config import class_names
from torchsite.modes import evaluating
from torchsite.randomness import make_rng
from torchsite.results import Result
from torchsite.shapes import Labels
from torchsite.training.run_manifest import fingerprint

METHODS_SHOWN = (
    "self_explanation",
    "gradient",
    "linear_approximation",
    "grad_cam",
    "random",
)
METRICS_SHOWN = ("self_consistency", "deletion", "completeness")
N_MISTAKES = 8


def examine(
    model: SITE | BlackBox,
    data: Dataset,
    *,
    training: Dataset | None = None,
    log: Path | None = None,
    methods: Sequence[str] | Mapping[str, Any] = METHODS_SHOWN,
    limit: int | None = 2000,
    n_compared: int = 200,
    n_probed: int = N_PROBED,
    n_transforms: int = 2,
    batch_size: int = 64,
    seed: int = 0,
    watch: Watch | None = None,
) -> Result:
    """Measure a model on `data`, of which at most `limit` pictures are drawn; for a report.

    `training` is the data that it was trained on and `log` the run's `metrics.csv`, both only to be shown.
    `methods` are compared on the first `n_compared` of the pictures drawn; none are if it is empty. Measures
    that probe see the first `n_probed`.
    """
    started = time.monotonic()
    check_data(model, data)
    rows = draw_rows(len(data), limit, seed)
    sample, poses = data[rows], Poses(model.config.family, n_transforms, seed)
    found = evaluate(model, sample, poses=poses, batch_size=batch_size, n_probed=n_probed, watch=watch)
    values = dict(found.values)
    values |= _answered(model, sample, rows, poses, batch_size)
    values["data"] = {"examined": describe_data(data)}
    if training is not None:
        values["data"]["training"] = describe_data(training)
    if log is not None:
        values["training"] = read_log(log)
    chosen = applicable(model, methods)
    if chosen:
        compared = _compared(
            model, sample[:n_compared], chosen, poses=poses, batch_size=batch_size, watch=watch
        )
        values["comparison"] = asdict(compared.to_result())
    config = describe_examined(model, data, len(sample)) | {
        "n_probed": min(n_probed, len(sample)),
        "n_compared": min(n_compared, len(sample)) if chosen else 0,
        "n_transforms": n_transforms,
        "family": to_mapping(poses.family),
    }
    return Result("examination", values, config, seed, time.monotonic() - started)


def _answered(
    model: SITE | BlackBox, sample: Dataset, rows: Labels, poses: Poses, batch_size: int
) -> dict[str, Any]:
    """What the model answers, as they are and in poses; examples of each class; the worst mistakes."""
    found = {
        "untransformed": ask(model, sample, None, batch_size),
        "transformed": ask(model, sample, poses, batch_size),
    }
    upright = found["untransformed"]
    examples = one_of_each(upright, len(sample.classes))
    return {
        "answers": {pose: describe_answers(answers) for pose, answers in found.items()},
        "examples": [_shown(upright, rows, position) for position in examples],
        "mistakes": {
            pose: [_shown(answers, rows, position) for position in answers.mistakes(N_MISTAKES)]
            for pose, answers in found.items()
        },
    }


def _compared(
    model: SITE | BlackBox,
    sample: Dataset,
    methods: Sequence[str] | Mapping[str, Any],
    *,
    poses: Poses,
    batch_size: int,
    watch: Watch | None,
) -> Comparison:
    """Post-hoc methods beside the model's own explanation, on a few pictures."""
    named = () if isinstance(methods, Mapping) else methods
    return compare(
        model,
        data=sample,
        methods=methods,
        method_options={name: options for name in named if (options := options_of(name, model))},
        metrics=METRICS_SHOWN,
        family=poses.family,
        n_transforms=poses.n,
        seed=poses.seed,
        batch_size=batch_size,
        watch=watch,
    )


def draw_rows(n: int, limit: int | None, seed: int) -> Labels:
    """At most `limit` row numbers in random order."""
    return torch.randperm(n, generator=make_rng(seed, "examination"))[:limit]


@torch.no_grad()
def ask(model: SITE | BlackBox, data: Dataset, poses: Poses | None, batch_size: int) -> Answers:
    """What the model says to the pictures as they are, or each in the first of its poses."""
    found, seen = [], 0
    with evaluating(model):
        for images, _ in batches(data, batch_size):
            indices = torch.arange(seen, seen + len(images))
            found.append(model(images if poses is None else poses.of(indices, 0)(images)))
            seen += len(images)
    return Answers(torch.cat(found), data.labels)


def applicable(
    model: SITE | BlackBox, methods: Sequence[str] | Mapping[str, Any]
) -> Sequence[str] | Mapping[str, Any]:
    """The methods without SITE's own explanation where the model has none."""
    if isinstance(methods, Mapping):
        return methods
    return [name for name in methods if applies(name, model)]


def check_data(model: SITE | BlackBox, data: Dataset) -> None:
    """The pictures and classes must be the model's, and two pictures are needed for a floor."""
    shape, classes = tuple(data.images.shape[1:]), tuple(data.classes)
    known, unnamed = model.config.classes, class_names(None, model.config.n_classes)
    if shape != tuple(model.config.image_shape):
        raise DataError(
            f"the model takes pictures of {model.config.image_shape}, {data.title} has {shape}: "
            f"load the data with the model's size"
        )
    if len(classes) != len(known) or known not in (unnamed, classes):
        raise DataError(f"the model knows the classes {list(known)}, {data.title} has {list(classes)}")
    if len(data) < 2:
        raise DataError(f"{data.title}: expected at least two pictures to examine, got {len(data)}")


def describe_examined(model: SITE | BlackBox, data: Dataset, n_images: int) -> dict[str, Any]:
    """Which model was examined, on how many pictures of which data."""
    return {
        "model": to_mapping(model.config),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "data": data.title,
        "fingerprint": fingerprint(data),
        "n_images": n_images,
    }


def describe_data(data: Dataset) -> dict[str, Any]:
    """How many pictures of which class."""
    return {
        "title": data.title,
        "shape": list(data.images.shape[1:]),
        "classes": list(data.classes),
        "counts": list(data.counts),
    }


def _shown(found: Answers, rows: Labels, position: int) -> dict[str, Any]:
    """One picture of the report: its row in the data, its place in the sample (which names its pose)."""
    return {
        "row": int(rows[position]),
        "position": position,
        "label": int(found.labels[position]),
        "predicted": int(found.predicted[position]),
        "confidence": round(float(found.confidence[position]), 6),
    }
