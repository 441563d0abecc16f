"""The steps of the BAM experiment, each kept in a file: four models and every method on both kinds."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from experiments.bam.data import BamHalves
from experiments.bam.dataset import BamDataset
from experiments.bam.measures import measure_method, options_of, patched_scenes
from experiments.bam.models import Models
from experiments.cache import load_arrays, save_arrays, step
from experiments.section import OfMethod
from torchsite.attribution import METHODS
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import fingerprint, weights_of
from torchsite.evaluation.methods import applies
from torchsite.model import SITE, BlackBox

# How many test pictures a method explains, eight times each: SITE's own, the usual one, a slow one.
N_OWN, N_USUAL, N_SLOW = 500, 200, 100
# The same with objects never seen, and the passes that a slow method may take there.
N_HELD_OUT, N_HELD_OUT_USUAL, PASSES = 150, 50, 2_000
PATCH_STEPS = 20


class Row(OfMethod):
    """A method on a kind of model: its scores, or `{"reason": …}`, on test pictures and on unseen objects."""

    test: Mapping[str, Any]
    held_out: Mapping[str, Any]


def n_pictures(method: str) -> int:
    """How many test pictures a method explains: its own explanation, which costs little, the most."""
    if method in ("self_explanation", "random"):
        return N_OWN
    return N_SLOW if METHODS[method].is_slow() else N_USUAL


def n_held_out(method: str) -> int:
    """The same for pictures with objects never seen, where less is asked."""
    if method == "self_explanation":
        return N_HELD_OUT
    return METHODS[method].n_pictures(N_HELD_OUT_USUAL, PASSES)


def measure_model(
    model: SITE | BlackBox, halves: BamHalves, by: str, steps: Path, kind: str
) -> Mapping[str, Any]:
    """Accuracy and, for SITE, self-consistency on the test pictures; scenes also with objects never seen."""
    data = halves.test.labelled(by)
    config = {"weights": weights_of(model), "pictures": fingerprint(data.images)}

    def find() -> dict[str, Any]:
        found = dict(evaluate(model, data, batch_size=50).values)
        if by == "scene":
            strangers = evaluate(model, halves.held_out.labelled(by), batch_size=50)
            found["held_out accuracy"] = strangers.values["accuracy"]
        return found

    return step(steps / f"{kind}-{by}-evaluation.json", config, find).values


def measure_methods(
    kind: str, models: Models, halves: BamHalves, methods: Sequence[str], steps: Path
) -> list[Row]:
    """Every method on one kind of model, on the test pictures and on those with objects never seen."""
    weights = weights_of(models.objects, models.scenes)
    names = [name for name in methods if applies(name, models.objects)]
    most = max(min(n_pictures(name), len(halves.test)) for name in names)
    parts = {"test": halves.test[:most], "held_out": halves.held_out[:N_HELD_OUT]}
    patched = {part: _patched(kind, part, models, bam, steps, weights) for part, bam in parts.items()}

    def measure(method: str, part: str) -> Mapping[str, Any]:
        bam = parts[part]
        n = min(n_pictures(method) if part == "test" else n_held_out(method), len(bam))
        config = {
            "weights": weights,
            "pictures": fingerprint(bam.images[:n]),
            "options": options_of(method, models.objects),
            "n_images": n,
        }
        find = partial(measure_method, method, models, bam[:n], patched[part][:n], named=part == "test")
        return step(steps / f"{kind}-{part}-{method}.json", config, find).values

    return [
        {"model": kind, "method": name, "test": measure(name, "test"), "held_out": measure(name, "held_out")}
        for name in names
    ]


def _patched(kind: str, part: str, models: Models, bam: BamDataset, steps: Path, weights: str) -> Tensor:
    path = steps / f"{kind}-{part}-patches-{weights}-{fingerprint(bam.images)}.npz"
    if not path.exists():
        save_arrays(path, {"patched": patched_scenes(models.scenes, bam, PATCH_STEPS)})
    return load_arrays(path)["patched"]
