"""Which experiment answers to which name: what `torchsite reproduce NAME` can run."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from torchsite.paper import (
    accuracy,
    baselines,
    consistency,
    examples,
    explanations,
    failures,
    families,
    food,
    many_classes,
    mask_k,
    method_sheet,
    photographs,
    variants,
)
from torchsite.paper import pointing as mnist_pointing
from torchsite.paper.bam import experiment as bam
from torchsite.paper.bam import photograph as bam_photograph
from torchsite.paper.models import pair_beside
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
    """The pointing game on the models of the MNIST experiment."""
    pair = pair_beside("mnist", folder, quick=quick, progress=progress)
    return mnist_pointing.run(pair.site, pair.black_box, pair.test, quick=quick, out=folder)


# The paper's tables and figures that look at the two models of one recipe, and what they show.
OF_PAIRS: Mapping[str, tuple[str, Any]] = {
    "consistency": ("self-consistency of all methods (Table 1)", consistency.run),
    "explanations": ("explanations of three pictures in two poses (Figure 3)", explanations.run),
    "sheet": ("all explanations of one picture in two poses (Figure 4)", method_sheet.run),
    "mask_k": ("accuracy and log-odds with pixels masked, all methods (Figure 5)", mask_k.run),
    "examples": ("explanations of every class in two poses (appendix)", examples.run),
    "failures": ("the reasons for confident mistakes (appendix)", failures.run),
}


def of_pairs(recipe: str, title: str) -> dict[str, Experiment]:
    """The experiments on the models of one recipe: `cifar10_consistency` and so on."""
    return {
        f"{recipe}_{name}": Experiment(f"{title}: {shows}", partial(run, recipe))
        for name, (shows, run) in OF_PAIRS.items()
    }


EXPERIMENTS: Mapping[str, Experiment] = {
    "mnist": Experiment("SITE and the black box on MNIST", partial(accuracy.run, "mnist")),
    "fashion_mnist": Experiment(
        "SITE and the black box on Fashion-MNIST", partial(accuracy.run, "fashion_mnist")
    ),
    "cifar10": Experiment("SITE and the black box on CIFAR-10", partial(accuracy.run, "cifar10")),
    "cifar10_cnn": Experiment("the same with the paper's small CNN", partial(accuracy.run, "cifar10_cnn")),
    "baselines": Experiment("classical models beside SITE on MNIST and CIFAR-10 (Table 2)", baselines.run),
    **of_pairs("cifar10", "CIFAR-10"),
    "cifar10_photographs": Experiment(
        "photographs from elsewhere, explained in two poses", partial(photographs.run, "cifar10")
    ),
    **of_pairs("mnist", "MNIST"),
    "targets": Experiment("mean, nearest and sampled targets on MNIST", partial(variants.run, "targets")),
    "targets_fashion": Experiment("the same on Fashion-MNIST", partial(variants.run, "targets_fashion")),
    "generators": Experiment("four forms of the generator on MNIST", partial(variants.run, "generators")),
    "mnist_pointing": Experiment("the pointing game and self-consistency, all methods", pointing),
    "bam": Experiment("objects on scenes: does the map show what the model was trained to see?", bam.run),
    "bam_scratch": Experiment(
        "the same, learnt from nothing", partial(bam.run, changes=bam.SCRATCH, name="bam_scratch")
    ),
    "bam_photograph": Experiment("its sheets for a cat's face on a pagoda", bam_photograph.run),
    "food10": Experiment("ten classes of Food-101, from nothing and from ImageNet", food.run),
    "many_classes": Experiment("101 classes: parameters, memory and speed", many_classes.run),
    "families": Experiment("scale, shear, reflection, smooth distortions on MNIST", families.run),
}
