"""The tables and figures of the paper by name: what `torchsite reproduce NAME` runs, draws and writes about.

Each name stands for a module of this package that holds the run, the figures and the section of its result.
The modules are imported when they are asked for. The order of the list is the
order of the sections in docs/results.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from torchsite.errors import ConfigError, did_you_mean
from torchsite.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from experiments.section import Pictures

Arrays = Mapping[str, "Tensor"]
Figures = Mapping[str, "Figure"]


# Results whose tables stand on a page of prose.
OTHER_PAGES = {
    "leaderboard": "leaderboard.md",
    "ablation": "leaderboard.md",
    "generators": "design/generators.md",
    "fooled": "metrics.md",
}


class ExperimentModule(Protocol):
    """What the module of an experiment holds. Figures and sections come from files, never from models."""

    def run(self, *what: Any, quick: bool = False, progress: bool = False, **rows: Any) -> Result:
        """Run, or continue, in a folder; modules of several results take their recipe or study first."""

    def figures(self, result: Result, arrays: Arrays) -> Figures:
        """The figures of a result by name; those that show pictures only if there are arrays."""

    def section(self, result: Result, pictures: "Pictures") -> str:
        """What docs/results.md says of a result, in Markdown."""


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    shows: str
    module: str
    about: str = ""  # the recipe or study, where one module serves several
    writes: str = ""  # the name of its result, if it is not that of the experiment
    public: bool = False  # whether the documentation may show its pictures
    models: tuple[str, ...] = ()  # those of the package that it measures, by the names of their folders

    @property
    def page(self) -> str:
        """Where in docs/ its tables stand: a page of its own, unless a page of prose has them."""
        return OTHER_PAGES.get(self.result_name, f"results/{self.result_name}.md")

    @property
    def result_name(self) -> str:
        """How its result file is called, without its ending."""
        return self.writes or self.name

    def run(self, folder: Path, *, quick: bool = False, progress: bool = False, **rows: Any) -> Result:
        """Run, or continue, the experiment in `folder`; the result file and its arrays stay there.

        `rows` choose some of its rows, or add to them, where the experiment is a board that allows it.
        """
        what = (self.about, folder) if self.about else (folder,)
        run = self._code().run
        unknown = [name for name in rows if name not in signature(run).parameters]
        if unknown:
            raise ConfigError(f"{self.name} has no rows to choose or add: leave --{unknown[0]} away")
        return run(*what, quick=quick, progress=progress, **rows)

    def figures(self, result: Result, arrays: Arrays) -> Figures:
        """Its figures by name; those that show pictures only if there are arrays."""
        return self._code().figures(result, arrays)

    def section(self, result: Result, pictures: "Pictures") -> str:
        """Its section of docs/results.md."""
        return self._code().section(result, pictures)

    def _code(self) -> ExperimentModule:
        return cast(ExperimentModule, import_module(f"experiments.{self.module}"))


def find_experiment(name: str) -> Experiment:
    """The experiment of this name; a wrong name is an error that suggests the nearest."""
    if name not in EXPERIMENTS:
        raise ConfigError(f"no experiment {name!r}: {did_you_mean(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]


def models_of(recipe: str) -> tuple[str, str]:
    """How the two models of a recipe are called where they ship."""
    return recipe, f"{recipe}_black_box"


def _accuracy(recipe: str, shows: str) -> Experiment:
    return Experiment(
        recipe, shows, "accuracy", recipe, writes=f"accuracy_{recipe}", models=models_of(recipe)
    )


def _of_pairs(name: str, shows: str, module: str = "") -> tuple[Experiment, ...]:
    """One result on the models of CIFAR-10, whose pictures may not be published, and one on MNIST's."""
    titles = {"cifar10": "CIFAR-10", "mnist": "MNIST"}
    return tuple(
        Experiment(
            f"{recipe}_{name}",
            f"{title}: {shows}",
            module or name,
            recipe,
            public=recipe == "mnist",
            models=models_of(recipe),
        )
        for recipe, title in titles.items()
    )


def _study(name: str, shows: str) -> Experiment:
    return Experiment(name, shows, "variants", name, public=True)


_ALL = (
    _accuracy("mnist", "SITE and the black box on MNIST"),
    _accuracy("fashion_mnist", "SITE and the black box on Fashion-MNIST"),
    _accuracy("cifar10", "SITE and the black box on CIFAR-10"),
    _accuracy("cifar10_cnn", "the same with the paper's small CNN"),
    Experiment("cifar10_seeds", "true maps of the small CNN from three seeds", "cnn_seeds"),
    Experiment("baselines", "classical models beside SITE on MNIST and CIFAR-10 (Table 2)", "classical"),
    *_of_pairs("explanations", "explanations of three pictures in two poses (Figure 3)"),
    Experiment(
        "cifar10_photographs",
        "photographs from elsewhere, explained in two poses",
        "photographs",
        "cifar10",
        public=True,
        models=models_of("cifar10"),
    ),
    *_of_pairs("sheet", "all explanations of one picture in two poses (Figure 4)", "method_sheet"),
    *_of_pairs("consistency", "self-consistency (Table 1)"),
    *_of_pairs("mask_k", "accuracy and log-odds with pixels masked, all methods (Figure 5)"),
    *_of_pairs("truth", "measures that a template cannot pass, all methods"),
    Experiment("fooled", "which measures map-makers without knowledge fool", "fooled"),
    *_of_pairs("examples", "explanations of every class in two poses (appendix)"),
    *_of_pairs("failures", "the reasons for confident mistakes (appendix)"),
    Experiment(
        "prototypes",
        "prototypes that strangers can read, MNIST and Fashion-MNIST (Figure 2)",
        "prototypes",
        public=True,
        models=("mnist", "fashion_mnist"),
    ),
    Experiment(
        "leaderboard",
        "self-explaining models and post-hoc methods: one protocol, one budget, three seeds",
        "leaderboard.experiment",
    ),
    Experiment("ablation", "what each part of the method gives", "leaderboard.ablation"),
    _study("targets", "mean and nearest targets on MNIST"),
    _study("targets_fashion", "the same on Fashion-MNIST"),
    _study("generators", "five forms of the generator on MNIST"),
    Experiment(
        "mnist_pointing",
        "the pointing game and self-consistency, all methods",
        "pointing",
        models=models_of("mnist"),
    ),
    Experiment(
        "bam",
        "objects on scenes: does the map show what the model was trained to see?",
        "bam.experiment",
        "bam",
    ),
    Experiment(
        "bam_objects",
        "the model of objects that ships: where its maps lie, and whether they are true",
        "bam.objects",
        writes="accuracy_bam_objects",
        models=("bam_objects",),
    ),
    Experiment("bam_seeds", "the same from three seeds", "bam.seeds"),
    Experiment("bam_motion", "the object alone moves: do maps follow it, or the frame?", "bam.motion"),
    Experiment("bam_photograph", "its sheets for a cat's face on a pagoda", "bam.photograph", public=True),
    Experiment("bam_scratch", "objects on scenes, learnt from nothing", "bam.experiment", "bam_scratch"),
    Experiment("food10", "ten classes of Food-101, from nothing and from ImageNet", "food"),
    Experiment("backbones", "six backbones on two sets of photographs, SITE and black box", "backbones"),
    Experiment("many_classes", "101 classes: parameters, memory and speed", "many_classes"),
    Experiment("families", "scale, shear, reflection, smooth distortions on MNIST", "families"),
)
EXPERIMENTS: Mapping[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
