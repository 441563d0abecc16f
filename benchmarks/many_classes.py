"""A hundred and one classes: parameters, memory and speed of the Food-101 recipe, on painted pictures.

    python benchmarks/many_classes.py [--steps 4]

The paper's budget for 101 classes at 128 × 128 pixels is 11.2 million parameters for the extractor and 3.4
million for the generator. The same model with ten classes stands beside it, so that the cost of ninety-one
classes more is seen. Memory is the peak of the process.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback

from torchsite.data import Dataset
from torchsite.model import SITE
from torchsite.model.blocks import n_parameters
from torchsite.training import fit
from torchsite.training.recipes import build_model, load_recipe

PAPER = {"extractor": 11.2e6, "generator": 3.4e6}
SLACK = 1.05


class Clock(Callback):
    """When the steps end."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.worked: list[float] = []

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: L.LightningModule, *_: Any) -> None:
        """Note the time, and the seconds that the processors worked."""
        self.ends.append(time.perf_counter())
        self.worked.append(time.process_time())


def measure(n_classes: int, n_steps: int) -> None:
    """Train a few steps and print one line."""
    recipe = load_recipe("food101")
    config = replace(recipe.training, epochs=1, validate_every=1, n_validation=2)
    n = n_steps * config.batch_size
    assert recipe.size is not None
    pixels = torch.randint(0, 256, (n, 3, recipe.size, recipe.size), dtype=torch.uint8)
    names = tuple(str(i) for i in range(n_classes))
    data = Dataset(pixels, torch.arange(n) % n_classes, names, "painted")
    model = build_model(recipe.model, data, config)
    assert isinstance(model, SITE)
    parameters = {
        "extractor": n_parameters(model.feature_extractor),
        "generator": n_parameters(model.generator),
    }
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        fit(model, data, config, validation=data[:2], folder=Path(folder) / "run", callbacks=[clock])
    n_pictures = (len(clock.ends) - 1) * config.batch_size
    pace, work = ((times[-1] - times[0]) / n_pictures for times in (clock.ends, clock.worked))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{n_classes:>4} classes   extractor {parameters['extractor'] / 1e6:5.2f} M   "
        f"generator {parameters['generator'] / 1e6:5.2f} M   {1000 * pace:6.1f} ms a picture, "
        f"{1000 * work:6.1f} ms of processor time   "
        f"peak {peak:4.2f} GB   ({torch.get_num_threads()} threads, batch {config.batch_size})",
        flush=True,
    )
    if n_classes == 101:
        within = {part: n <= SLACK * PAPER[part] for part, n in parameters.items()}
        print(f"within the paper's budget of 11.2 M and 3.4 M: {within}")
        assert all(within.values())


def main() -> None:
    """Ten classes and a hundred and one, each in a process of its own: peaks do not fall."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--classes", type=int)
    options = parser.parse_args()
    if options.classes:
        measure(options.classes, options.steps)
        return
    for n_classes in (10, 101):
        words = [sys.executable, __file__, "--classes", str(n_classes), "--steps", str(options.steps)]
        subprocess.run(words, check=True)


if __name__ == "__main__":
    main()
