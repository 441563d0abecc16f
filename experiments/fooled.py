"""Which measures do map-makers without knowledge fool? Six of them, by every measure, beside a true map.

Claim:    a measure is worth what it says about maps that know nothing. The frame template fails frame control
          and object motion; what edges and the picture itself fool is said, not hidden.
Command:  torchsite reproduce fooled
Cost:     planted pictures with a known right map, embedded digits with the shipped model of MNIST, CIFAR-10
          with its own; 200 pictures of each, half an hour of one core. With --quick, two dozen of
          the first two.

The rule: a measure is fooled if the near end of the score's 95 % interval lies beyond that of every null by
more than MARGIN. A null is what the measure itself gives for knowing nothing: a number, or an estimate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from matplotlib.figure import Figure
from torch import nn

from experiments.bam.models import Models
from experiments.bam.pairs import PAIRED, Pairs
from experiments.measuring import Asked, Explaining, Measuring, same
from experiments.planted import Planted, planted, true_map
from experiments.section import Pictures
from experiments.study import Arrays, Found, Run, Study
from experiments.tables import Place, Row
from torchsite.attribution import METHODS
from torchsite.data import Dataset, load_dataset, to_float
from torchsite.evaluation.fingerprints import weights_of
from torchsite.metrics import CONTROL_MAPS, strokes
from torchsite.model import SITE, load
from torchsite.report.format import NOTHING, bounds, look_up, markdown_table
from torchsite.results import Result
from torchsite.shapes import Heatmaps
from torchsite.transforms import TransformFamily

MARGIN = 0.05


class Question(NamedTuple):
    """A row of the table: a score of a measure, what knowing nothing gets, and which way is better."""

    metric: str
    score: Place
    nulls: tuple[Place | float, ...]
    higher: bool = True


QUESTIONS: Mapping[str, Question] = {
    "self-consistency, calibrated": Question("self_consistency", ("calibrated",), (0.0,)),
    "frame control, filled": Question("frame_control", ("filled", "calibrated"), (0.0,)),
    "frame control, evidence": Question("frame_control", ("evidence", "ratio"), (1.0,), False),
    "object motion, follows": Question("object_motion", ("object_follows", "calibrated"), (0.0,)),
    "object motion, holds": Question("object_motion", ("object_holds", "calibrated"), (0.0,)),
    "object motion, scene stays": Question("object_motion", ("scene_stays", "calibrated"), (0.0,)),
    "patch deletion": Question("patch_deletion", ("correlation",), (("floor",), 0.0)),
    "grid pointing, 2×2": Question("grid_pointing", ("share",), (("chance",),)),
    "energy pointing": Question(
        "energy_pointing", ("transformed", "share"), (("transformed", "area"), ("transformed", "centre"))
    ),
    "pointing game, τ = 0": Question(
        "pointing_game",
        ("transformed", "tau_0", "score"),
        (("transformed", "tau_0", "anywhere"), ("transformed", "tau_0", "centre")),
    ),
    "one-map share": Question("one_map_share", ("share",), (1.0,), False),
    "mask-k, gain, black": Question("mask_k", ("fills", "black", "accuracy", "gain"), (0.0,)),
    "mask-k, gain, blur": Question("mask_k", ("fills", "blur", "accuracy", "gain"), (0.0,)),
    "insertion, gain, black": Question("insertion", ("fills", "black", "gain"), (0.0,)),
    "insertion, gain, blur": Question("insertion", ("fills", "blur", "gain"), (0.0,)),
    "deletion, gain, black": Question("deletion", ("fills", "black", "gain"), (0.0,), False),
    "deletion, gain, blur": Question("deletion", ("fills", "blur", "gain"), (0.0,), False),
    "sanity": Question("sanity", ("score",), (1.0,), False),
}


def is_fooled(score: Any, nulls: Sequence[Any], *, higher: bool, margin: float = MARGIN) -> bool | None:
    """Whether a score lies beyond every null by more than both intervals and the margin; None if unknown."""
    sign = 1.0 if higher else -1.0
    near, *far = _end(score, lowest=higher), *(_end(null, lowest=not higher) for null in nulls)
    if near is None or not far or None in far:
        return None
    return all(sign * (near - null) > margin for null in far if null is not None)


def verdict(question: Question, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a measure's values say to a question: the score, the hardest null, whether it is fooled."""
    nulls = [null if isinstance(null, float) else look_up(values, *null) for null in question.nulls]
    known = [null for null in nulls if bounds(null)[0] is not None]
    worst, found = max if question.higher else min, look_up(values, *question.score)
    return {
        "score": found,
        "null": worst(known, key=lambda null: bounds(null)[0] or 0.0) if known else None,
        "fooled": is_fooled(found, nulls, higher=question.higher),
    }


def _end(found: Any, *, lowest: bool) -> float | None:
    """The lower or upper end of an estimate, or its value if it has no interval."""
    value, low, high = bounds(found)
    end = low if lowest else high
    return value if end is None else end


OWN = "own"
# How many pictures each setting has; a quick run has few, and no photographs.
N_PICTURES: Mapping[str, int] = {"Planted": 200, "Digits": 200, "Photographs": 200}
N_QUICK: Mapping[str, int] = {"Planted": 24, "Digits": 24}
BATCH = 50
CURVE: Mapping[str, Any] = {"fractions": (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    **dict.fromkeys(("mask_k", "insertion", "deletion"), CURVE),
    "grid_pointing": {"sides": (2,), "confidence": 0.5},  # label smoothing keeps probabilities below 0.9
    "sanity": {"n_stages": 2},
}
SHIPPED = {
    "Digits": ("mnist", "mnist_sample", "Embedded digits, the shipped model of MNIST."),
    "Photographs": ("cifar10", "cifar10", "CIFAR-10, the shipped model."),
}


@dataclass(frozen=True, eq=False)
class Setting:
    """Pictures, a model that names them, its own map; the objects' regions and the parts where known."""

    name: str
    about: str
    model: nn.Module
    data: Dataset
    own: Any  # of the model: its own map
    family: TransformFamily
    regions: Heatmaps | None = None
    parts: Planted | None = None

    def rows(self, maker: Explaining, steps: Path) -> Iterator[Row]:
        """What every measure finds of a maker, or of the own map."""
        n, title = len(self.data), self.name.lower()
        asked = {one.metric: Asked(n, options=OPTIONS.get(one.metric, {})) for one in QUESTIONS.values()}
        both = {name: asked.pop(name) for name in PAIRED if name in asked}
        measuring = Measuring(title, self.model, self.data, steps, self.regions, self.family, BATCH)
        yield from measuring.rows(maker, asked)
        if self.parts is not None:
            models = Models(cast(SITE, self.parts.objects), cast(SITE, self.parts.scenes))
            yield from Pairs(title, models, self.parts.pictures, steps, family=self.family).rows(maker, both)


def settings_of(counts: Mapping[str, int]) -> Iterator[Setting]:
    """Planted parts, digits and photographs: those that are to have pictures."""
    if "Planted" in counts:
        yield planted_setting(counts["Planted"])
    for name, (model, data, about) in SHIPPED.items():
        if name in counts:
            site = cast(SITE, load(model))
            pictures = load_dataset(data, "test")[: counts[name]]
            regions = strokes(to_float(pictures.images)) if data == "mnist_sample" else None
            own, family = METHODS["self_explanation"], site.config.family
            yield Setting(name, about, site, pictures, own, family, regions)


def planted_setting(n: int, seed: int = 0) -> Setting:
    """Bright bars over tinted scenes, and models of which the true map is known."""
    found = planted(n, seed=seed)
    about = "Bright bars over dark scenes, named by a sum of local terms: the model's own map is the truth."
    data, regions = found.pictures.labelled("object"), found.pictures.regions.float()
    own = partial(partial, true_map)  # of a model: its true map
    return Setting("Planted", about, found.objects, data, own, TransformFamily(), regions, found)


def find(run: Run) -> Found:
    """For each setting and question the verdict on every maker; nothing where a measure has no meaning."""
    found, weights = {}, {}
    for setting in settings_of(N_QUICK if run.quick else N_PICTURES):
        makers = [*(same(*maker) for maker in CONTROL_MAPS.items()), Explaining(OWN, setting.own)]
        values = {
            (maker.name, row["metric"]): row["values"] or {}
            for maker in makers
            for row in setting.rows(maker, run.steps)
        }
        cells = {
            row: {
                maker.name: verdict(question, values.get((maker.name, question.metric), {}))
                for maker in makers
            }
            for row, question in QUESTIONS.items()
        }
        found[setting.name] = {"about": setting.about, "n_images": len(setting.data), "cells": cells}
        weights[setting.name] = weights_of(setting.model)
    return Found({"settings": found}, config={"margin": MARGIN, "weights": weights})


def draw(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """A square for each measure and map-maker in each setting: red if it fools the measure."""
    settings: Mapping[str, Any] = result.values["settings"]
    figure = Figure(figsize=(4.2 * len(settings) + 1.2, 0.24 * len(QUESTIONS) + 1.6), layout="constrained")
    grid = figure.subplots(1, len(settings), squeeze=False, sharey=True)[0]
    for axes, (name, found) in zip(grid, settings.items(), strict=True):
        shades = [[_shade(cells, maker) for maker in CONTROL_MAPS] for cells in found["cells"].values()]
        axes.imshow(shades, cmap="RdYlGn_r", vmin=0, vmax=1, aspect="auto")
        axes.set_xticks(range(len(CONTROL_MAPS)), [*map(_spoken, CONTROL_MAPS)], rotation=45, ha="right")
        axes.set_title(name, fontsize=9)
    rows = list(next(iter(settings.values()))["cells"])
    grid[0].set_yticks(range(len(rows)), rows, fontsize=8)
    return {result.name: figure}


WORDS = """Six map-makers that never ask a model, by every measure. In brackets is the *null*: what the \
measure itself gives for knowing nothing. A score in **bold** fools its measure, by this rule: the near end \
of its 95 % interval is beyond the null's by more than {margin:g}, in the direction that is better. The last \
column is the model's own map, by the same rule: there, bold is what one hopes for. A dash, or no row: the \
measure has no meaning there.
"""


def text(result: Result, pictures: Pictures) -> str:
    """The rule, and a table for each setting: score, null in brackets, bold where a measure is fooled."""
    parts = [WORDS.format(margin=result.config["margin"])]
    header = ["", *map(_spoken, CONTROL_MAPS), "the model's own"]
    tables = {name: found["cells"] for name, found in result.values["settings"].items()}
    for name, found in result.values["settings"].items():
        rows = [[row, *(_cell(c.get(m)) for m in (*CONTROL_MAPS, OWN))] for row, c in tables[name].items()]
        table = markdown_table(header, [row for row in rows if set(row[1:]) != {NOTHING}])
        parts += [f"### {name}\n", f"{found['about']} {found['n_images']:,} pictures.\n", table]
    never = [
        row
        for row in next(iter(tables.values()))
        if not any(_shade(table[row], maker) == 1 for table in tables.values() for maker in CONTROL_MAPS)
    ]
    parts.append(f"Fooled by nobody, in any of these settings: {', '.join(never) or 'none'}.\n")
    return "\n".join([*parts, pictures.chart(result.name, "Red: the map-maker fools the measure")])


def _cell(found: Mapping[str, Any] | None) -> str:
    value = None if found is None else bounds(found["score"])[0]
    if found is None or value is None:
        return NOTHING
    null = bounds(found["null"])[0]
    shown = f"**{value:.2f}**" if found["fooled"] else f"{value:.2f}"
    return f"{shown} ({NOTHING if null is None else f'{null:.2f}'})"


def _shade(cells: Mapping[str, Any], maker: str) -> float:
    known = look_up(cells, maker, "fooled")
    return float("nan") if known is None else float(known)


def _spoken(maker: str) -> str:
    return "the picture" if maker == "picture" else maker.replace("_", " ")


STUDY = Study(
    "fooled",
    "## Which measures do map-makers without knowledge fool?",
    find=find,
    text=text,
    draw=draw,
)
