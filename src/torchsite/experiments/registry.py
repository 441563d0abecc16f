"""Which experiment answers to which name: what `torchsite reproduce NAME` can run."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from torchsite.data import load_dataset
from torchsite.experiments import accuracy, mnist_pointing, variants
from torchsite.experiments.runs import QUICK, trained
from torchsite.results import Result


class Run(Protocol):
    """What an experiment is: a function from a folder to a result."""

    def __call__(self, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
        """Run, or continue, the experiment in `folder`."""


@dataclass(frozen=True)
class Experiment:
    """A name's meaning: what it shows and how it is run."""

    shows: str
    run: Run


def pointing(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """The pointing game on the models of the MNIST experiment, which stand in the folder beside this one."""
    models = folder.with_name("mnist-quick" if quick else "mnist")
    changes = dict(QUICK) if quick else {}
    site = trained("mnist", models / "site", changes, progress=progress)
    black_box = trained(
        "mnist", models / "black_box", changes | {"model.kind": "black_box"}, progress=progress
    )
    data = load_dataset("mnist_sample" if quick else "mnist", "test")
    return mnist_pointing.run(site, black_box, data, quick=quick, out=folder)


EXPERIMENTS: Mapping[str, Experiment] = {
    "mnist": Experiment("SITE and the black box on MNIST", partial(accuracy.run, "mnist")),
    "fashion_mnist": Experiment(
        "SITE and the black box on Fashion-MNIST", partial(accuracy.run, "fashion_mnist")
    ),
    "targets": Experiment("mean, nearest and sampled targets on MNIST", partial(variants.run, "targets")),
    "targets_fashion": Experiment("the same on Fashion-MNIST", partial(variants.run, "targets_fashion")),
    "generators": Experiment("four forms of the generator on MNIST", partial(variants.run, "generators")),
    "mnist_pointing": Experiment("the pointing game and self-consistency, all methods", pointing),
}
