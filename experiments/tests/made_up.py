"""Made-up results and arrays: every number that a section or a figure shows must be one of theirs."""

from pathlib import Path

import torch

from experiments.publish import fill, tables
from experiments.registry import EXPERIMENTS
from experiments.section import Pictures
from torchsite.randomness import make_rng

ROOT = Path(__file__).parents[2]


def page(template, folder):
    """A page of the documentation, filled with the results of a folder, whatever weights they are of."""
    if template == "results":
        return "\n".join(tables(ROOT, folder, shipped={}).values())
    return fill(ROOT, f"{template}.md.j2", folder, shipped={})


def section(result):
    """The section of a result, as docs/results.md has it if its arrays are there."""
    (experiment,) = [one for one in EXPERIMENTS.values() if one.result_name == result.name]
    return experiment.section(result, Pictures(of_data=experiment.public))


def estimate(value):
    return {"value": value, "low": value - 0.01, "high": value + 0.01}


def line(model, method, **more):
    return {"model": model, "method": method, "n_images": 500, "options": {}, "ms_per_image": 1.5, **more}


def shown(n=2, side=8):
    rng = make_rng(0)
    return {name: torch.rand(n, 3, side, side, generator=rng) for name in ("images", "moved")} | {
        name: torch.randn(n, side, side, generator=rng) for name in ("maps", "moved_maps", "carried_maps")
    }


def notes(*labels):
    return [
        {"class": label, "predicted": label, "predicted when moved": label, "self-consistency": 0.9}
        for label in labels
    ]
