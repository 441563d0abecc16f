"""Small data, small models, small runs."""

import hashlib

import torch

from torchsite.configs import from_mapping
from torchsite.data import load_dataset
from torchsite.model import SITE, BlackBox
from torchsite.training import Callback, TrainingConfig, fit

TINY = {"widths": (4, 8), "code": 8, "trunk": (4, 4)}
PYRAMID = {"depth": 2, "widths": (4, 4, 4), "common": 4}


def digits(n=100, split="train"):
    return load_dataset("mnist_sample", split)[:n]


def make_site(extractor="identity", seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        options = PYRAMID if extractor == "pyramid" else {}
        return SITE(
            extractor,
            "lateral",
            10,
            image_shape=(1, 28, 28),
            extractor_options=options,
            generator_options=TINY,
        )


def make_black_box(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        options = {"widths": (4, 8), "code": 8}
        return BlackBox("identity", 10, image_shape=(1, 28, 28), encoder_options=options)


def transformation(**options):
    """The transformation term in plain data, with few exemplars."""
    return {"name": "transformation", "n_nearest": 4, "n_exemplars": 2} | options


def equivariance(**options):
    """The direct term in plain data."""
    return {"name": "equivariance"} | options


def make_config(**changes):
    """Three steps an epoch on a hundred digits."""
    small = {"epochs": 2, "batch_size": 32, "terms": [transformation()], "checkpoint_seconds": 1e9}
    return from_mapping(TrainingConfig, small | {"precision": "32"} | changes)


def run(folder, model=None, data=None, config=None, callbacks=(), resume=False, **changes):
    """`fit` on few digits, with the settings of `make_config` unless a `config` is given."""
    return fit(
        model or make_site(),
        data or digits(),
        config or make_config(**changes),
        validation=digits(20, "test"),
        folder=folder,
        callbacks=callbacks,
        resume=resume,
    )


def digest(model):
    """All weights in one word: equal words, equal bits."""
    content = b"".join(tensor.numpy().tobytes() for tensor in model.state_dict().values())
    return hashlib.sha256(content).hexdigest()


class FakeClock(Callback):
    """A clock that only the steps of a run move: each by `seconds(now)`."""

    def __init__(self, seconds):
        self.now, self.seconds = 0.0, seconds

    def monotonic(self):
        return self.now

    def step_done(self, run, losses):
        self.now += self.seconds(self.now)
