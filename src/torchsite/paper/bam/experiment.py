"""BAM: does the heatmap point at what the model was trained to see? (Appendix of the paper.)

SITE and the black box are trained twice on the same pictures, fruit and pets pasted on scenes: once to name
the object, once to name the scene. A good explanation shows the object to the one and the scene to the other.

Claim:    SITE is first on MCS (the object matters to the object model only), and on the pointing game when
          the picture is transformed: the object's region for the object model, the rest for the scene model.
Command:  torchsite reproduce bam          (starts from ImageNet: needs torchsite[pretrained])
          torchsite reproduce bam_scratch  (from nothing, pictures of 64 pixels)
Cost:     four trainings and all methods on all four models within 90 minutes on two cores; less than a minute
          with --quick, on painted shapes and patterns. Every model and every method is a step of its own.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from torchsite.attribution import METHODS
from torchsite.data import BamDataset, Dataset
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import fingerprint
from torchsite.evaluation.methods import applies
from torchsite.paper.arrays import load_arrays, save_arrays
from torchsite.paper.bam.data import BamHalves, painted_halves, real_halves
from torchsite.paper.bam.measures import (
    LABELLINGS,
    MODELS,
    Models,
    measure_method,
    options_of,
    patched_scenes,
)
from torchsite.paper.bam.sheet import SHEET, keep_sheet
from torchsite.paper.cache import step
from torchsite.paper.runs import trained
from torchsite.results import Result
from torchsite.training.recipes import load_recipe

RECIPE = "bam"

# From nothing: a smaller pyramid, half the pixels, as much time.
SCRATCH: Mapping[str, Any] = {
    "size": 64,
    "model.feature_extractor": "pyramid",
    "model.extractor_options": {"widths": [24, 48, 96, 192]},
    "precision": "bf16",
    "schedule": "one_cycle",
    "optimiser": "muon",
    "learning_rate": 3e-3,
    "epochs": 4,
}
QUICK: Mapping[str, Any] = {
    "size": 32,
    "model.feature_extractor": "pyramid",
    "model.extractor_options": {"widths": [8, 16, 16, 32], "common": 16},
    "model.generator_options": {"widths": [8, 16, 16], "trunk": [16, 8, 8]},
    "learning_rate": 5e-3,
    "batch_size": 16,
    "epochs": 4,
    "validate_every": 4,
}

# How many test pictures a method explains, eight times each; the passes that a slow one may take.
N_OWN, N_USUAL, PASSES = 500, 200, 2_000
N_HELD_OUT = 150
PATCH_STEPS = 20

QUICK_METHODS = ("self_explanation", "gradient", "grad_cam", "excitation_backprop", "random")


def run(
    folder: Path,
    *,
    changes: Mapping[str, Any] | None = None,
    name: str = "bam",
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Train four models (or take them from `folder`), measure every method on both kinds, keep two sheets."""
    started = time.monotonic()
    settings = dict(changes or {}) | (dict(QUICK) if quick else {})
    halves, models = train_all(folder, settings, quick=quick, progress=progress)
    accuracy = {
        f"{kind}, {by}": _accuracy(getattr(models[kind], f"{by}s"), halves, by, folder / "steps", kind)
        for kind in MODELS
        for by in LABELLINGS
    }
    methods = [m for m in METHODS if not quick or m in QUICK_METHODS]
    table = [
        line for kind in MODELS for line in measured(kind, models[kind], halves, methods, folder / "steps")
    ]
    values = {
        "accuracy": accuracy,
        "training": {f"{k}, {by}": _training_seconds(folder, k, by) for k in MODELS for by in LABELLINGS},
        "table": table,
        "verdict": verdict(table),
        "sheet": keep_sheet(models, halves.test, [m for m in SHEET if m in methods], folder / f"{name}.npz"),
    }
    config = {
        "recipe": RECIPE,
        "changes": settings,
        "n_train": len(halves.train),
        "n_test": len(halves.test),
        "n_held_out": len(halves.held_out),
        "objects": list(halves.train.object_classes),
        "scenes": list(halves.train.scene_classes),
        "quick": quick,
    }
    result = Result(name, values, config, 0, _seconds(values, time.monotonic() - started))
    result.save(folder / f"{name}.json")
    return result


def train_all(
    folder: Path, settings: Mapping[str, Any], *, quick: bool, progress: bool
) -> tuple[BamHalves, dict[str, Models]]:
    """The pictures, and four models trained on them or taken from `folder`."""
    size = int(settings.get("size") or load_recipe(RECIPE).size or 96)
    halves = painted_halves(size) if quick else real_halves(size, progress=progress)
    return halves, {kind: train_both(kind, halves, folder, settings, progress) for kind in MODELS}


def train_both(
    kind: str, halves: BamHalves, folder: Path, changes: Mapping[str, Any], progress: bool
) -> Models:
    """One kind of model, by object and by scene."""
    found = [
        trained(
            RECIPE,
            folder / f"{kind}-{by}",
            dict(changes) | {"model.kind": kind},
            data=(halves.train.labelled(by), halves.test.labelled(by)),
            progress=progress,
        )
        for by in LABELLINGS
    ]
    return Models(*found)


def n_pictures(method: str) -> int:
    """How many test pictures a method explains: its own explanation, which costs little, the most."""
    if method in ("self_explanation", "random"):
        return N_OWN
    return METHODS[method].n_pictures(N_USUAL, PASSES)


def measured(
    kind: str, models: Models, halves: BamHalves, methods: Sequence[str], steps: Path
) -> list[dict[str, Any]]:
    """Every method on one kind of model, on the test pictures and on those with objects never seen."""
    weights = fingerprint(*(t for m in (models.objects, models.scenes) for t in m.state_dict().values()))
    names = [name for name in methods if applies(name, models.objects)]
    most = max(min(n_pictures(name), len(halves.test)) for name in names)
    parts = {"test": halves.test[:most], "held_out": halves.held_out[:N_HELD_OUT]}
    patched = {part: _patched(kind, part, models, bam, steps, weights) for part, bam in parts.items()}
    lines = []
    for method in names:
        line: dict[str, Any] = {"model": kind, "method": method}
        for part, bam in parts.items():
            n = min(n_pictures(method), len(bam))
            n = n if part == "test" or method == "self_explanation" else min(n, len(bam) // 3)
            config: dict[str, Any] = {
                "weights": weights,
                "pictures": fingerprint(bam.images[:n]),
                "options": options_of(method, models.objects),
                "n_images": n,
            }
            find = partial(measure_method, method, models, bam[:n], patched[part][:n], named=part == "test")
            line[part] = dict(step(steps / f"{kind}-{part}-{method}.json", config, find).values)
        lines.append(line)
    return lines


def verdict(table: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Who is first on MCS and on pointing under transformation, and by how much; all that have a value."""
    paths = {
        "MCS, untransformed": ("untransformed", "mcs"),
        "MCS, transformed": ("transformed", "mcs"),
        "pointing at objects, transformed": ("pointing objects", "transformed", "tau_0", "score"),
        "pointing at scenes, transformed": ("pointing scenes", "transformed", "tau_0", "score"),
    }
    return {name: _ranking(table, path) for name, path in paths.items()}


def _accuracy(model: Any, halves: BamHalves, by: str, steps: Path, kind: str) -> dict[str, Any]:
    """Accuracy and, for SITE, self-consistency on the test pictures; scenes also with objects never seen."""
    data: Dataset = halves.test.labelled(by)
    config = {"weights": fingerprint(*model.state_dict().values()), "pictures": fingerprint(data.images)}

    def find() -> dict[str, Any]:
        found = dict(evaluate(model, data, batch_size=50).values)
        if by == "scene":
            strangers = evaluate(model, halves.held_out.labelled(by), batch_size=50)
            found["held_out accuracy"] = strangers.values["accuracy"]
        return found

    return dict(step(steps / f"{kind}-{by}-evaluation.json", config, find).values)


def _patched(kind: str, part: str, models: Models, bam: BamDataset, steps: Path, weights: str) -> Tensor:
    path = steps / f"{kind}-{part}-patches-{weights}-{fingerprint(bam.images)}.npz"
    if not path.exists():
        save_arrays(path, {"patched": patched_scenes(models.scenes, bam, PATCH_STEPS)})
    return load_arrays(path)["patched"]


def _training_seconds(folder: Path, kind: str, by: str) -> float:
    return Result.load(folder / f"{kind}-{by}" / "result.json").seconds


def _seconds(values: Mapping[str, Any], now: float) -> float:
    """How long everything took, whether now or in an earlier part of the run."""
    measures = [line[part].get("seconds", 0.0) for line in values["table"] for part in ("test", "held_out")]
    return max(now, sum(values["training"].values()) + sum(measures))


def _ranking(table: Sequence[Mapping[str, Any]], path: Sequence[str]) -> dict[str, Any]:
    scores: dict[str, float] = {}
    for line in table:
        found: Any = line["test"]
        for key in path:
            found = found.get(key, {}) if isinstance(found, Mapping) else {}
        value = found.get("value") if isinstance(found, Mapping) else None
        if value is not None and line["method"] != "random":
            scores[f"{line['method']} on {line['model']}"] = value
    order = sorted(scores, key=lambda name: -scores[name])
    own = "self_explanation on site"
    return {
        "first": order[0] if order else None,
        "scores": {name: scores[name] for name in order[:5]},
        "own rank": order.index(own) + 1 if own in order else None,
        "own": scores.get(own),
    }
