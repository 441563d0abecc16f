"""Who stands on the board: models, what their training adds to the common one, and who explains them.

All networks are small and cost about the same for a picture; what differs is given in multiply-accumulates,
and the trainings are as long as the budget lets them be. To add a model, make an `Entry`; to add a method on
the black box, `with_method`. Both fit in a file of twenty lines (examples/leaderboard/your_own.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from experiments.peers import BCos, PrototypeParts
from torchsite.attribution import METHODS
from torchsite.data import Dataset
from torchsite.errors import ConfigError, did_you_mean
from torchsite.metrics import CONTROL_MAPS
from torchsite.model import SITE, BlackBox, ImageClassifier
from torchsite.objective import AdditiveEvidence, EquivarianceTerm, Term, TransformationTerm
from torchsite.objective.concise import ConciseEvidence
from torchsite.shapes import Images, Labels
from torchsite.training import TrainingConfig
from torchsite.training.recipes import pixel_statistics

OWN = "itself"
IGNORANT_MARK = "ignorant_"
BLACK_BOX = "black_box"

Explain = Callable[[Images, Labels], Tensor]
OnModel = Callable[[nn.Module], Explain]
Build = Callable[[Dataset, TrainingConfig], ImageClassifier]

EXTRACTOR = "small_cnn"  # the paper's small one, narrow: a cell is four pixels wide
WIDTHS = (16, 32, 64)
SPATIAL: Mapping[str, Any] = {"widths": (16, 32), "trunk": (32, 16)}


@dataclass(frozen=True)
class Entry:
    """A model on the board: how it is built for a data set, its terms, and who explains it.

    `explainers` are built on the trained model: anything that takes the model and answers a function of
    pictures and classes, such as the classes of METHODS. The one called "itself" is the model's own.
    """

    name: str
    title: str
    build: Build
    terms: tuple[Term, ...] = ()
    explainers: Mapping[str, OnModel] = field(default_factory=lambda: {OWN: METHODS["self_explanation"]})

    @property
    def explains_itself(self) -> bool:
        """Whether its maps are its own."""
        return OWN in self.explainers


def given(data: Dataset, config: TrainingConfig) -> dict[str, Any]:
    """What every model is told of its data."""
    mean, std = pixel_statistics(data)
    channels, height, width = data.images.shape[1:]
    shape = (channels, height, width)
    told = {"image_shape": shape, "classes": data.classes, "family": config.family}
    return told | {"mean": tuple(mean), "std": tuple(std)}


def seeded(data: Dataset, config: TrainingConfig, make: Callable[[], ImageClassifier]) -> ImageClassifier:
    """A model whose first weights follow the seed of its training."""
    del data
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(config.seed)
        return make()


def site(extractor: str, generator: str, zero_sum: bool = True, **options: Any) -> Build:
    """SITE of these parts."""
    return lambda data, config: seeded(
        data, config, lambda: SITE(extractor, generator, zero_sum=zero_sum, **options, **given(data, config))
    )


def _b_cos(data: Dataset, config: TrainingConfig) -> ImageClassifier:
    told = {name: value for name, value in given(data, config).items() if name not in ("mean", "std")}
    options = {"widths": (12, 24, 56)}
    return seeded(data, config, lambda: BCos("b_cos", zero_sum=True, extractor_options=options, **told))


def _parts(data: Dataset, config: TrainingConfig) -> ImageClassifier:
    options = {"widths": WIDTHS, "depth": 32}
    return seeded(
        data,
        config,
        lambda: PrototypeParts(EXTRACTOR, zero_sum=True, extractor_options=options, **given(data, config)),
    )


def _black_box(data: Dataset, config: TrainingConfig) -> ImageClassifier:
    options: dict[str, Any] = {
        "extractor_options": {"widths": WIDTHS, "depth": 16},
        "encoder_of": "spatial",
    }
    encoder = {"widths": SPATIAL["widths"]}
    return seeded(
        data, config, lambda: BlackBox(EXTRACTOR, encoder_options=encoder, **options, **given(data, config))
    )


SITE_PARTS: Mapping[str, Any] = {
    "extractor_options": {"widths": WIDTHS, "depth": 16},
    "generator_options": dict(SPATIAL),
}
CAM_PARTS: Mapping[str, Any] = {"extractor_options": {"widths": WIDTHS, "depth": 32}}
PAPER = TransformationTerm(weight=5.0, targets="mean")
# The terms of the recipe `cifar10_additive`. The shipped weights came in three stages, of which the second
# first asks for true maps; here it is the second half of one training.
SHIPPED = (
    TransformationTerm(weight=0.25, targets="mean"),
    EquivarianceTerm(weight=1.0, maps="relative"),
    AdditiveEvidence(weight=1.0, place=0.2, sizes="shapley", beta=0.2, start=0.5),
    ConciseEvidence(weight=0.5, start=0.5),
)
POST_HOC = (
    "gradient",
    "guided_backprop",
    "deconvnet",
    "linear_approximation",
    "grad_cam",
    "excitation_backprop",
    "integrated_gradients",
    "occlusion",
)


@dataclass(frozen=True)
class _Ignorant:
    """A map-maker that knows nothing of any model."""

    name: str

    def __call__(self, model: nn.Module) -> Explain:
        """The maker, whatever the model."""
        return CONTROL_MAPS[self.name]


KNOW_NOTHING: Mapping[str, OnModel] = {
    IGNORANT_MARK + name: _Ignorant(name) for name in ("random", "centre_blob", "frame_template", "edges")
}

ENTRIES: tuple[Entry, ...] = (
    Entry("site", "SITE as shipped", site(EXTRACTOR, "spatial", **SITE_PARTS), SHIPPED),
    Entry("site_paper", "SITE as in the paper", site(EXTRACTOR, "spatial", False, **SITE_PARTS), (PAPER,)),
    Entry("cam", "CAM network", site(EXTRACTOR, "constant", **CAM_PARTS)),
    Entry("cam_additive", "CAM network, SITE's terms", site(EXTRACTOR, "constant", **CAM_PARTS), SHIPPED[1:]),
    Entry(
        "bagnet",
        "BagNet-like",
        site("local", "constant", extractor_options={"width": 20, "depth": 24, "patch": 14}),
    ),
    Entry("b_cos", "B-cos", _b_cos),
    Entry("parts", "ProtoPNet-like", _parts),
    Entry(
        BLACK_BOX,
        "black box",
        _black_box,
        explainers={**{name: METHODS[name] for name in POST_HOC}, **KNOW_NOTHING},
    ),
)


def with_method(
    entries: Sequence[Entry], name: str, method: OnModel, on: str = BLACK_BOX
) -> tuple[Entry, ...]:
    """The entries with one more method on the black box, or on another of them."""
    find([on], entries)
    return tuple(
        replace(entry, explainers={**entry.explainers, name: method}) if entry.name == on else entry
        for entry in entries
    )


def find(names: Sequence[str], entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries of these names, all if none is named; a wrong name is an error with the nearest."""
    known = {entry.name: entry for entry in entries}
    for name in names:
        if name not in known:
            raise ConfigError(f"no entry {name!r} on the board: {did_you_mean(name, known)}")
    return tuple(known[name] for name in names) if names else tuple(entries)
