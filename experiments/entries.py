"""The entries of the leaderboard: how a model is built, its terms, who explains it; those of one's own."""

import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments.boards import OWN
from experiments.fields import Build, Told, chosen
from experiments.measuring import Explain, same
from experiments.peers import BCos, PrototypeParts
from experiments.tables import IGNORANT_MARK
from torchsite.attribution import METHODS
from torchsite.errors import ConfigError
from torchsite.metrics import CONTROL_MAPS
from torchsite.model import SITE, BlackBox
from torchsite.objective import AdditiveEvidence, EquivarianceTerm, Term, TransformationTerm

BLACK_BOX = "black_box"
OnModel = Callable[[Any], Explain]

TERMS = (
    EquivarianceTerm(weight=1.0, maps="relative"),
    AdditiveEvidence(weight=1.0, place=0.2, sizes="shapley", beta=0.2),
)
POST_HOC = (
    *("gradient", "guided_backprop", "linear_approximation", "grad_cam", "excitation_backprop"),
    *("integrated_gradients", "occlusion", "score_cam"),
)
KNOW_NOTHING = ("random", "centre_blob", "frame_template", "edges")


@dataclass(frozen=True)
class Entry:
    """A model on the board; the explainer called "itself" is the model's own.

    Explainers are built on the trained model: anything that takes it and answers a function of pictures and
    classes, such as the classes of METHODS.
    """

    name: str
    title: str
    build: Build
    terms: tuple[Term, ...] = ()
    explainers: Mapping[str, OnModel] = field(default_factory=lambda: {OWN: METHODS["self_explanation"]})


def site(generator: str, zero_sum: bool = True, only_parts: bool = False, **options: Any) -> Build:
    """SITE with this generator; with `only_parts` its features see few pixels each."""

    def build(features: str, told: Told) -> SITE:
        local = only_parts and features == "two_scales"
        return SITE(
            "two_scales_parts" if local else features, generator, zero_sum=zero_sum, **options, **told
        )

    return build


ENTRIES: tuple[Entry, ...] = (
    Entry("site", "SITE", site("two_scales"), TERMS),
    Entry(
        "site_paper",
        "SITE as in the paper",
        site("spatial", False),
        (TransformationTerm(weight=5.0, targets="mean"),),
    ),
    Entry("cam", "CAM network", site("constant")),
    Entry("bagnet", "BagNet-like", site("constant", only_parts=True)),
    Entry("parts", "ProtoPNet-like", lambda features, told: PrototypeParts(features, zero_sum=True, **told)),
    Entry("b_cos", "B-cos head", lambda features, told: BCos(features, zero_sum=True, **told)),
    Entry(
        BLACK_BOX,
        "black box",
        lambda features, told: BlackBox(features, encoder_of="spatial", **told),
        explainers={name: METHODS[name] for name in POST_HOC}
        | {IGNORANT_MARK + name: same(name, CONTROL_MAPS[name]).on for name in KNOW_NOTHING},
    ),
)


def with_method(
    entries: Sequence[Entry], name: str, method: OnModel, on: str = BLACK_BOX
) -> tuple[Entry, ...]:
    """The entries with one more method on the black box, or on another of them."""
    chosen([on], entries)
    return tuple(
        replace(entry, explainers={**entry.explainers, name: method}) if entry.name == on else entry
        for entry in entries
    )


def read_entries(path: Path) -> tuple[Entry, ...]:
    """The entries that a file of the user's own names as `ENTRIES`."""
    if not path.is_file():
        raise ConfigError(f"{path}: expected a Python file that defines ENTRIES, found none there")
    found = runpy.run_path(str(path)).get("ENTRIES", ())
    if not found or not all(isinstance(entry, Entry) for entry in found):
        raise ConfigError(f"{path}: expected ENTRIES, a list of experiments.leaderboard.Entry")
    return tuple(found)
