"""Everything that a report shows of a model whose pictures may have several labels, found once.

| part | what |
|---|---|
| labels, mean, right_answers | the figures of each label (`labels.py`), on pictures as they are |
| posed | the same in random poses |
| curves | sensitivity against false alarms, precision against sensitivity, of each label |
| self_consistency | whether the map of the likeliest label follows the picture, with its floor |
| examples | for each label the picture that has it and is surest to |
| mistakes | the answers that are furthest on the wrong side |
"""

import time
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor
from torchmetrics.functional.classification import binary_precision_recall_curve, binary_roc

from torchsite.configs import to_mapping
from torchsite.data import Dataset, to_float
from torchsite.errors import DataError
from torchsite.evaluation.examine import ask, check_data, describe_data, describe_examined, draw_rows
from torchsite.evaluation.labels import label_figures
from torchsite.evaluation.training_log import read_log
from torchsite.metrics import Poses, plain, self_consistency
from torchsite.model import SITE, BlackBox
from torchsite.randomness import make_rng
from torchsite.results import Result
from torchsite.shapes import Logits

N_MISTAKES = 8
N_POINTS = 41
Marks = Bool[Tensor, "batch classes"]


def examine_labels(
    model: SITE | BlackBox,
    data: Dataset,
    *,
    training: Dataset | None = None,
    log: Path | None = None,
    limit: int | None = 2000,
    n_moved: int = 100,
    batch_size: int = 32,
    seed: int = 0,
) -> Result:
    """Measure a model of several labels on `data`, of which at most `limit` pictures are drawn.

    Whether maps follow the picture is asked of the first `n_moved` of them.
    """
    started = time.monotonic()
    check_data(model, data)
    if data.marks is None:
        raise DataError(f"{data.title} has one class for each picture: use `examine`")
    rows = draw_rows(len(data), limit, seed)
    sample, poses = data[rows], Poses(model.config.family, 1, seed)
    marks = data.marks[rows]
    upright, posed = (ask(model, sample, how, batch_size).logits for how in (None, poses))
    values = label_figures(upright, marks, data.classes)
    values |= {
        "posed": label_figures(posed, marks, data.classes),
        "curves": {name: _curves(upright[:, i], marks[:, i]) for i, name in enumerate(data.classes)},
        "examples": _examples(upright, marks, rows),
        "mistakes": _mistakes(upright, marks, rows),
        "data": {"examined": describe_data(data)},
    }
    if isinstance(model, SITE):
        values["self_consistency"] = _consistency(model, sample[:n_moved], upright[:n_moved], seed)
    if training is not None:
        values["data"]["training"] = describe_data(training)
    if log is not None:
        values["training"] = read_log(log)
    config = describe_examined(model, data, len(sample)) | {"family": to_mapping(poses.family)}
    return Result("examination", values, config, seed, time.monotonic() - started)


def _curves(scores: Tensor, truth: Tensor) -> dict[str, list[list[float]]] | None:
    """Points of both curves from strict to lenient, thinned; none where a label is true of all or of none."""
    if not 0 < int(truth.sum()) < len(truth):
        return None
    alarms, hits, _ = binary_roc(scores.sigmoid(), truth.long())
    precision, recall, _ = binary_precision_recall_curve(scores.sigmoid(), truth.long())
    return {"roc": _thinned(alarms, hits), "precision_recall": _thinned(recall.flip(0), precision.flip(0))}


def _thinned(x: Tensor, y: Tensor) -> list[list[float]]:
    places = torch.linspace(0, len(x) - 1, min(len(x), N_POINTS)).round().long()
    return [[round(float(a), 4), round(float(b), 4)] for a, b in zip(x[places], y[places], strict=True)]


def _examples(logits: Logits, marks: Marks, rows: Tensor) -> list[dict[str, Any]]:
    found = []
    for label in range(marks.shape[1]):
        scores = logits[:, label].masked_fill(~marks[:, label], -torch.inf)
        if marks[:, label].any():
            found.append(_entry(int(scores.argmax()), label, logits, marks, rows))
    return found


def _mistakes(logits: Logits, marks: Marks, rows: Tensor) -> list[dict[str, Any]]:
    """The answers that are furthest on the wrong side."""
    wrong = torch.where(marks, -logits, logits)
    order = wrong.flatten().argsort(descending=True)[:N_MISTAKES].tolist()
    places = [divmod(place, marks.shape[1]) for place in order]
    return [
        _entry(position, label, logits, marks, rows)
        for position, label in places
        if wrong[position, label] > 0
    ]


def _entry(position: int, label: int, logits: Logits, marks: Marks, rows: Tensor) -> dict[str, Any]:
    return {
        "row": int(rows[position]),
        "position": position,
        "label": label,
        "true": bool(marks[position, label]),
        "probability": float(logits[position, label].sigmoid()),
    }


def _consistency(model: SITE, data: Dataset, logits: Logits, seed: int) -> dict[str, Any]:
    rng = make_rng(seed, "examine labels")
    family, images = model.config.family, to_float(data.images)
    found = plain(self_consistency(model, images, logits.argmax(1), family=family, n_transforms=1, rng=rng))
    return {name: found[name] for name in ("raw", "floor", "calibrated", "centred")}
