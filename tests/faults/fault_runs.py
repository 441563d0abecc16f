"""A small run that all faults are tried on: six steps of a small model on a hundred digits."""

import functools
import hashlib
import multiprocessing
import os
import time
from pathlib import Path

import torch
from torch import nn

from torchsite.data import Dataset, load_dataset
from torchsite.errors import StoppedError
from torchsite.model import SITE
from torchsite.objective import TransformationTerm
from torchsite.training import TrainingConfig, fit
from torchsite.training.checkpoints import checkpoints

OPTIONS = {"widths": (4, 8), "code": 8, "trunk": (4, 4)}


def make_model(extractor="identity"):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return SITE(extractor, "lateral", 10, image_shape=(1, 28, 28), generator_options=OPTIONS)


def run(folder, epochs=2, model=None, data=None, **options):
    """Begin the run, or go on with it, saving after every step."""
    torch.set_num_threads(1)
    config = TrainingConfig(
        epochs=epochs,
        batch_size=32,
        terms=(TransformationTerm(n_nearest=4, n_exemplars=2),),
        precision="32",
        checkpoint_seconds=0,
        validate_every=epochs,
    )
    return fit(
        model or make_model(),
        load_dataset("mnist_sample")[:100] if data is None else data,
        config,
        validation=load_dataset("mnist_sample", "test")[:20],
        folder=folder,
        resume=True,
        **options,
    )


def weights_of(folder):
    """The final weights in one word: equal words, equal bits."""
    return hashlib.sha256((Path(folder) / "model" / "model.safetensors").read_bytes()).hexdigest()


@functools.cache
def processes():
    """Processes that start in a moment, because a server has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torchsite.training", "torchsite.data", "lightning"])
    return context


def work(folder, epochs):
    """The run in a process of its own, which ends as the command line does if it is told to stop."""
    try:
        run(Path(folder), epochs)
    except StoppedError as error:
        os._exit(128 + error.signal)


def start(folder, epochs):
    process = processes().Process(target=work, args=(str(folder), epochs), daemon=True)
    process.start()
    return process


def wait_for_step(folder, process, n=1):
    """Until the process has written its n-th checkpoint, or has ended."""
    first = newest(folder)
    while process.is_alive() and newest(folder) < first + n:
        time.sleep(0.002)


def newest(folder):
    """The number of the newest checkpoint; -1 if there is none."""
    found = checkpoints(Path(folder) / "checkpoints")
    return int(found[0].name[:8]) if found else -1


class Poisoned(nn.Module):
    """An extractor that answers white pictures with NaN."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, images):
        white = images.mean((1, 2, 3), keepdim=True) > 0.45
        return torch.where(white, torch.nan, images * self.scale)


def with_white(rows):
    """The digits, some of them replaced by white."""
    data = load_dataset("mnist_sample")[:100]
    images = data.images.clone()
    images[list(rows)] = 255
    return Dataset(images, data.labels, data.classes, data.name, data.split)
