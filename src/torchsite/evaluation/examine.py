"""Everything that a report of one model shows, found once and kept as one result.

Command:  torchsite report MODEL DATA
Cost:     2,000 MNIST pictures under two transforms, five methods on 200 of them: about a minute on two cores.

The pictures are a random sample in random order, whatever order the data has: batches of one class would
raise the mismatched floor. Row numbers in the result are those of the data that was passed.

What the result holds depends on the data: one class for each picture, or labels of which several may be true.

| one class | several labels |
|---|---|
| the measures of `evaluate` | labels, mean, right_answers: the figures of each label (`answers.py`) |
| answers: confusion, calibration, each class | posed: the same figures in poses |
| comparison: other methods beside the model's own maps | curves: ROC, precision against sensitivity |
| examples: one picture of each class that is recognised | examples: for each label the surest picture |
| mistakes: the most confident, as they are and in poses | mistakes: the answers furthest off |
| self_consistency, frame_control, patch_deletion … | self_consistency: of the likeliest label's map |
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from torchsite.configs import to_mapping
from torchsite.data import Dataset, batches, to_float
from torchsite.errors import DataError
from torchsite.evaluation.answers import Answers, LabelAnswers, label_figures, one_of_each
from torchsite.evaluation.compare import Watch, compare
from torchsite.evaluation.evaluate import N_PROBED, evaluate
from torchsite.evaluation.methods import applies, options_of
from torchsite.evaluation.training_log import read_log
from torchsite.metrics import Poses, plain, self_consistency
from torchsite.model import SITE, BlackBox
from torchsite.modes import evaluating
from torchsite.randomness import make_rng
from torchsite.results import Result
from torchsite.shapes import Labels, Logits
from torchsite.training.run_folder import fingerprint

METHODS_SHOWN = (
    "self_explanation",
    "gradient",
    "linear_approximation",
    "grad_cam",
    "random",
)
METRICS_SHOWN = ("self_consistency", "deletion", "completeness")
N_MISTAKES = 8
N_MOVED = 100  # pictures of several labels whose maps are asked to follow them


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
    that probe see the first `n_probed`. Where several labels may be true of a picture, their figures are
    found instead, with one pose and no methods.
    """
    started = time.monotonic()
    check_data(model, data)
    rows = draw_rows(len(data), limit, seed)
    sample = data[rows]
    config: dict[str, Any] = {
        "model": to_mapping(model.config),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "data": data.title,
        "fingerprint": fingerprint(data),
        "n_images": len(sample),
        "family": to_mapping(model.config.family),
    }
    values: dict[str, Any] = {"data": {"examined": _described(data)}}
    if training is not None:
        values["data"]["training"] = _described(training)
    if log is not None:
        values["training"] = read_log(log)
    if data.multi_hot is not None:
        values |= _of_labels(model, sample, rows, Poses(model.config.family, 1, seed), batch_size)
        return Result("examination", values, config, seed, time.monotonic() - started)
    poses = Poses(model.config.family, n_transforms, seed)
    found = evaluate(model, sample, poses=poses, batch_size=batch_size, n_probed=n_probed, watch=watch)
    values |= {**found.values, **_of_classes(model, sample, rows, poses, batch_size)}
    chosen, options = methods, {}
    if not isinstance(methods, Mapping):
        chosen = [name for name in methods if applies(name, model)]
        options = {name: known for name in chosen if (known := options_of(name, model))}
    if chosen:
        compared = compare(
            model,
            data=sample[:n_compared],
            methods=chosen,
            method_options=options,
            metrics=METRICS_SHOWN,
            family=poses.family,
            n_transforms=n_transforms,
            seed=seed,
            batch_size=batch_size,
            watch=watch,
        )
        values["comparison"] = asdict(compared.to_result())
    config |= {
        "n_probed": min(n_probed, len(sample)),
        "n_compared": min(n_compared, len(sample)) if chosen else 0,
        "n_transforms": n_transforms,
    }
    return Result("examination", values, config, seed, time.monotonic() - started)


def _of_classes(
    model: SITE | BlackBox, sample: Dataset, rows: Labels, poses: Poses, batch_size: int
) -> dict[str, Any]:
    """Predictions as they are and in poses; examples of each class; the worst mistakes."""
    found = {
        "untransformed": ask(model, sample, None, batch_size),
        "transformed": ask(model, sample, poses, batch_size),
    }
    upright = found["untransformed"]

    def shown(answers: Answers, position: int) -> dict[str, Any]:
        """One picture of the report: its row in the data, its place in the sample (which names its pose)."""
        return {
            "row": int(rows[position]),
            "position": position,
            "label": int(answers.labels[position]),
            "predicted": int(answers.predicted[position]),
            "confidence": round(float(answers.confidence[position]), 6),
        }

    return {
        "answers": {pose: answers.described() for pose, answers in found.items()},
        "examples": [shown(upright, place) for place in one_of_each(upright, len(sample.classes))],
        "mistakes": {
            pose: [shown(answers, place) for place in answers.mistakes(N_MISTAKES)]
            for pose, answers in found.items()
        },
    }


def _of_labels(
    model: SITE | BlackBox, sample: Dataset, rows: Labels, poses: Poses, batch_size: int
) -> dict[str, Any]:
    """The figures of each label as they are and in poses; its examples; the worst mistakes."""
    assert sample.multi_hot is not None
    logits, posed = (ask(model, sample, how, batch_size).logits for how in (None, poses))
    found = LabelAnswers(logits, sample.multi_hot)

    def shown(position: int, label: int) -> dict[str, Any]:
        return {
            "row": int(rows[position]),
            "position": position,
            "label": label,
            "true": bool(found.multi_hot[position, label]),
            "probability": float(logits[position, label].sigmoid()),
        }

    values = label_figures(logits, sample.multi_hot, sample.classes) | {
        "posed": label_figures(posed, sample.multi_hot, sample.classes),
        "curves": {name: found.curves(label) for label, name in enumerate(sample.classes)},
        "examples": [shown(*place) for place in found.surest()],
        "mistakes": [shown(*place) for place in found.mistakes(N_MISTAKES)],
    }
    if isinstance(model, SITE):
        values["self_consistency"] = _consistency(model, sample[:N_MOVED], logits[:N_MOVED], poses)
    return values


def _consistency(model: SITE, data: Dataset, logits: Logits, poses: Poses) -> dict[str, Any]:
    rng = make_rng(poses.seed, "examine labels")
    images, labels = to_float(data.images), logits.argmax(1)
    found = plain(self_consistency(model, images, labels, family=poses.family, n_transforms=1, rng=rng))
    return {name: found[name] for name in ("raw", "floor", "calibrated", "centred")}


def draw_rows(n: int, limit: int | None, seed: int) -> Labels:
    """At most `limit` row numbers in random order."""
    return torch.randperm(n, generator=make_rng(seed, "examination"))[:limit]


@torch.no_grad()
def ask(model: SITE | BlackBox, data: Dataset, poses: Poses | None, batch_size: int) -> Answers:
    """The logits of the pictures as they are, or each in the first of its poses."""
    found, seen = [], 0
    with evaluating(model):
        for images, _ in batches(data, batch_size):
            indices = torch.arange(seen, seen + len(images))
            found.append(model(images if poses is None else poses.of(indices, 0)(images)))
            seen += len(images)
    return Answers(torch.cat(found), data.labels)


def check_data(model: SITE | BlackBox, data: Dataset) -> None:
    """The data must fit the model, and two pictures are needed for a floor."""
    model.check_data(data)
    if len(data) < 2:
        raise DataError(f"{data.title}: expected at least two pictures to examine, got {len(data)}")


def _described(data: Dataset) -> dict[str, Any]:
    """How many pictures of which class."""
    return {
        "title": data.title,
        "shape": list(data.images.shape[1:]),
        "classes": list(data.classes),
        "counts": list(data.counts),
    }
