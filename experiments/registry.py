"""The tables and figures of the paper by name: what `torchsite reproduce NAME` runs, draws and writes about.

Each name stands for a `Study` in a module of this package, which is imported when it is asked for. The order
of the list is that of docs/results.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchsite.errors import ConfigError, did_you_mean
from torchsite.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from experiments.section import Pictures
    from experiments.study import Study

# Results whose tables stand on a page of prose.
OTHER_PAGES = {
    "leaderboard": "leaderboard.md",
    "fooled": "metrics.md",
}


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    shows: str
    module: str
    minutes: float  # of one core, roughly, where nothing is there yet
    recipe: str = ""  # if it is on the models of one
    study: str = "STUDY"  # its name in the module
    writes: str = ""  # the name of its result, if it is not that of the experiment
    public: bool = False  # whether the documentation may show its pictures
    models: tuple[str, ...] = ()  # those of the package that it measures, by the names of their folders

    def is_done(self, folder: Path) -> bool:
        """Whether its result is in the folder of its run."""
        return (folder / f"{self.result_name}.json").is_file()

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
        study = self.code()
        unknown = [name for name in rows if name not in signature(study.on).parameters]
        if unknown:
            raise ConfigError(f"{self.name} has no rows to choose or add: leave --{unknown[0]} away")
        return study.run(self.recipe, folder, quick=quick, progress=progress, **rows)

    def figures(self, result: Result, arrays: Mapping[str, "Tensor"]) -> Mapping[str, "Figure"]:
        """Its figures by name, drawn from the file; those that show pictures only if there are arrays."""
        return self.code().figures(result, arrays)

    def section(self, result: Result, pictures: "Pictures") -> str:
        """What its page says of a result, in Markdown."""
        return self.code().section(result, pictures)

    def code(self) -> "Study":
        """The study in its module."""
        study: Study = getattr(import_module(f"experiments.{self.module}"), self.study)
        return study


def find_experiment(name: str) -> Experiment:
    """The experiment of this name; a wrong name is an error that suggests the nearest."""
    if name not in EXPERIMENTS:
        raise ConfigError(f"no experiment {name!r}: {did_you_mean(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]


def models_of(recipe: str) -> tuple[str, str]:
    """How the two models of a recipe are called where they ship."""
    return recipe, f"{recipe}_black_box"


def plan(out: Path) -> list[tuple[Experiment, bool]]:
    """Every experiment in an order in which models come before what measures them, and whether it is done."""
    return [(one, one.is_done(out / one.name)) for one in EXPERIMENTS.values()]


def _accuracy(recipe: str, shows: str, minutes: float) -> Experiment:
    return Experiment(
        recipe, shows, "accuracy", minutes, recipe, writes=f"accuracy_{recipe}", models=models_of(recipe)
    )


def _of_pairs(
    name: str, shows: str, minutes: tuple[float, float], module: str = "", study: str = ""
) -> tuple[Experiment, ...]:
    """One result on the models of CIFAR-10, whose pictures may not be published, and one on MNIST's."""
    titles = {"cifar10": "CIFAR-10", "mnist": "MNIST"}
    return tuple(
        Experiment(
            f"{recipe}_{name}",
            f"{title}: {shows}",
            module or name,
            each,
            recipe,
            study or "STUDY",
            public=recipe == "mnist",
            models=models_of(recipe),
        )
        for (recipe, title), each in zip(titles.items(), minutes, strict=True)
    )


_ALL = (
    _accuracy("mnist", "SITE and the black box on MNIST", 90),
    _accuracy("fashion_mnist", "SITE and the black box on Fashion-MNIST", 90),
    _accuracy("cifar10", "SITE and the black box on CIFAR-10", 400),
    _accuracy("cifar10_cnn", "the same with the paper's small CNN", 120),
    _accuracy("eurosat", "SITE and the black box on EuroSAT: satellite pictures in any orientation", 60),
    Experiment(
        "baselines", "classical models beside SITE on MNIST and CIFAR-10 (Table 2)", "classical", minutes=50
    ),
    *_of_pairs(
        "explanations", "explanations of three pictures in two poses (Figure 3)", (2, 1), "shown", "THREE"
    ),
    Experiment(
        "cifar10_photographs",
        "photographs from elsewhere, explained in two poses",
        "shown",
        1,
        "cifar10",
        "PHOTOGRAPHED",
        public=True,
        models=models_of("cifar10"),
    ),
    *_of_pairs("sheet", "all explanations of one picture in two poses (Figure 4)", (2, 1), "method_sheet"),
    *_of_pairs("consistency", "self-consistency (Table 1)", (65, 40)),
    *_of_pairs("mask_k", "accuracy and log-odds with pixels masked, all methods (Figure 5)", (15, 10)),
    *_of_pairs("truth", "measures that a template cannot pass, all methods", (75, 45)),
    Experiment("fooled", "which measures map-makers without knowledge fool", "fooled", minutes=30),
    *_of_pairs(
        "examples", "explanations of every class in two poses (appendix)", (2, 1), "shown", "EVERY_CLASS"
    ),
    *_of_pairs("failures", "the reasons for confident mistakes (appendix)", (2, 1)),
    Experiment(
        "prototypes",
        "prototypes that strangers can read, MNIST and Fashion-MNIST (Figure 2)",
        "prototypes",
        25,
        public=True,
        models=("mnist", "fashion_mnist"),
    ),
    Experiment(
        "leaderboard",
        "self-explaining models and post-hoc methods: the same features and minutes, three seeds",
        "leaderboard",
        minutes=1300,
    ),
    Experiment(
        "mnist_pointing",
        "the pointing game and self-consistency, all methods",
        "pointing",
        30,
        "mnist",
        models=models_of("mnist"),
    ),
    Experiment(
        "bam",
        "objects on scenes: does the map show what the model was trained to see?",
        "bam.experiment",
        180,
        "bam",
    ),
    Experiment(
        "bam_objects",
        "the model of objects that ships: where its maps lie, and whether they are true",
        "bam.objects",
        minutes=5,
        writes="accuracy_bam_objects",
        models=("bam_objects",),
    ),
    Experiment(
        "bam_motion", "the object alone moves: do maps follow it, or the frame?", "bam.motion", 20, "bam"
    ),
    Experiment(
        "bam_photograph", "its sheets for a cat's face on a pagoda", "bam.photograph", minutes=1, public=True
    ),
    Experiment("food10", "ten classes of Food-101, from ImageNet", "food", 35, "food10"),
)
EXPERIMENTS: Mapping[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
