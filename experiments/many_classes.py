"""A hundred and one classes: parameters, memory and speed of the Food-101 recipe, on painted pictures.

Claim:    with 101 classes at 128 × 128 pixels SITE needs no more parameters than the paper's (11.2 million
          for the extractor, 3.4 million for the generator) and trains in the memory of a laptop. The same
          model with ten classes stands beside it, so that the cost of ninety-one classes more is seen. With
          mixed prototypes (`generator: mixed`), of which no step draws all, a step costs nearly the same.
Command:  torchsite reproduce many_classes
Cost:     four minutes; seconds with --quick, on small pictures of a few classes.
"""

import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

import torch
from matplotlib.figure import Figure

from experiments.cache import save_result
from experiments.processes import peak_memory, run_apart
from experiments.registry import Arrays
from experiments.section import Pictures, source
from torchsite.data import Dataset
from torchsite.model import SITE
from torchsite.model.blocks import n_parameters
from torchsite.randomness import make_rng
from torchsite.report.format import markdown_table
from torchsite.results import Result
from torchsite.training import Callback, fit
from torchsite.training.loop import Run
from torchsite.training.recipes import build_model, load_recipe, override

RECIPE = "food101"
N_CLASSES = (10, 101)
N_STEPS = 6
PAPER = {"extractor": 11.2e6, "generator": 3.4e6}

MIXED = "mixed"
# Prototypes of all classes as mixtures of sixteen drawn ones; ten classes of a step stand for all.
FORMS: Mapping[str, Mapping[str, Any]] = {
    "": {},
    MIXED: {"model.generator": "mixed", "terms.transformation.n_classes": 10},
}

QUICK: Mapping[str, Any] = {"size": 32, "batch_size": 4}
QUICK_CLASSES = (2, 3)
QUICK_STEPS = 3

Cost = TypedDict(
    "Cost",
    {
        "extractor": int,
        "generator": int,
        "seconds a picture": float,
        "processor seconds a picture": float,
        "peak bytes": int | None,
        "threads": int,
    },
)


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train a few steps with few classes and with many, each in a process of its own: peaks do not fall."""
    del progress
    started = time.monotonic()
    changes, n_steps = (dict(QUICK), QUICK_STEPS) if quick else ({}, N_STEPS)
    values: dict[str, Cost] = {}
    for form, added in FORMS.items():
        for n_classes in QUICK_CLASSES if quick else N_CLASSES:
            values[f"{n_classes} {form}".strip()] = run_apart(
                measure, n_classes, {**changes, **added}, n_steps
            )
    recipe = override(load_recipe(RECIPE), changes)
    config = {
        "recipe": RECIPE,
        "size": recipe.size,
        "batch_size": recipe.training.batch_size,
        "n_steps": n_steps,
        "paper": dict(PAPER),
        "quick": quick,
        "weights": {},  # speed and memory of the first steps: none are trained
    }
    return save_result(Result("many_classes", values, config, 0, time.monotonic() - started), folder)


def measure(n_classes: int, changes: Mapping[str, Any], n_steps: int) -> Cost:
    """Parameters, seconds a picture (by the clock, of the processors), this process's peak of memory."""
    recipe = override(load_recipe(RECIPE), changes)
    config = replace(recipe.training, epochs=1, validate_every=1, n_validation=2)
    n, size = n_steps * config.batch_size, recipe.size or 128
    rng = make_rng(0, "many classes")
    pixels = torch.randint(0, 256, (n, 3, size, size), dtype=torch.uint8, generator=rng)
    names = tuple(str(i) for i in range(n_classes))
    data = Dataset(pixels, torch.arange(n) % n_classes, names, "painted")
    model = build_model(recipe.model, data, config)
    assert isinstance(model, SITE)
    clock = _Clock()
    with tempfile.TemporaryDirectory(prefix="torchsite-") as folder:
        fit(model, data, config, validation=data[:2], folder=Path(folder) / "run", callbacks=[clock])
    n_timed = (len(clock.ends) - 1) * config.batch_size
    seconds, worked = ((times[-1] - times[0]) / n_timed for times in (clock.ends, clock.worked))
    return {
        "extractor": n_parameters(model.feature_extractor),
        "generator": n_parameters(model.generator),
        "seconds a picture": seconds,
        "processor seconds a picture": worked,
        "peak bytes": peak_memory(),
        "threads": torch.get_num_threads(),
    }


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """None: this result is a table."""
    return {}


def section(result: Result, pictures: Pictures) -> str:
    """What ninety-one classes more cost."""
    paper: Mapping[str, float] = result.config["paper"]
    costs: Mapping[str, Cost] = result.values
    rows = [
        [
            f"{n_classes.split()[0]} classes" + (", mixed prototypes" if MIXED in n_classes else ""),
            f"{found['extractor'] / 1e6:.2f} M",
            f"{found['generator'] / 1e6:.2f} M",
            f"{1000 * found['seconds a picture']:.0f} ms",
            f"{1000 * found['processor seconds a picture']:.0f} ms",
            "unknown" if found["peak bytes"] is None else f"{found['peak bytes'] / 1e9:.2f} GB",
        ]
        for n_classes, found in costs.items()
    ]
    rows.append(["paper, 101 classes", *(f"{paper[part] / 1e6:.1f} M" for part in paper), "–", "–", "–"])
    header = ["", "extractor", "generator", "training, a picture", "processor time", "peak of memory"]
    return (
        "## Scale in classes: the Food-101 recipe on painted pictures\n\n"
        f"{source(result)}\n\n"
        f"{result.config['n_steps']} training steps of {result.config['batch_size']} pictures of "
        f"{result.config['size']} pixels, each in two views.\n\n"
        + markdown_table(header, rows)
        + _ratios(costs)
    )


def _ratios(costs: Mapping[str, Cost]) -> str:
    """How many times a step of many classes takes, for each form of the generator."""
    said = []
    for form, words in (("", "with all prototypes drawn"), (MIXED, "with mixed prototypes")):
        both = [found for name, found in costs.items() if (MIXED in name) == bool(form)]
        if len(both) > 1:
            few, many = both[0], both[-1]
            times = many["processor seconds a picture"] / few["processor seconds a picture"]
            said.append(f"{times:.1f} times {words}")
    names = [name for name in costs if MIXED not in name]
    return f"\nA step of {names[-1]} classes takes, beside one of {names[0]}: {', '.join(said)}.\n"


class _Clock(Callback):
    """When the steps end."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.worked: list[float] = []

    def step_done(self, run: Run, losses: Mapping[str, torch.Tensor]) -> None:
        """Note the time, and the seconds that the processors worked."""
        self.ends.append(time.perf_counter())
        self.worked.append(time.process_time())
