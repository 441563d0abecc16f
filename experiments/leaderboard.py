"""The leaderboard: models that explain themselves and post-hoc methods, same features, same minutes.

Claim:    none in advance. Every row learns with the same pretrained features (`two_scales`), on the same
          pictures in the same views, for the same minutes of one core; every explainer is measured on the
          same pictures and poses, beside map-makers that know nothing. Where SITE is not first, the page
          says so.
Command:  torchsite reproduce leaderboard     (some rows: --only b_cos,cam; one's own: --add FILE)
Cost:     entries × fields × seeds × the minutes of a field, and about as long again for all measures. Every
          training and every measure is a file: lanes share the work, `measure(folder, data=["bam"],
          seeds=[0])`. With --quick, a few digits and painted shapes, and features that start from nothing.

A row in ten lines: an `Entry` with a name, a title, a function that builds the model of what it is told, and
its terms; for a method on the black box, `with_method` (examples/leaderboard/your_own.py).
"""

import runpy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from matplotlib.figure import Figure

from experiments.bam.data import painted_halves, real_half
from experiments.bam.dataset import BamDataset
from experiments.boards import Column, dots, first_words, row_of, table_of_rows
from experiments.cache import save_result
from experiments.peers import BCos, PrototypeParts
from experiments.recipes import is_finished
from experiments.registry import Arrays
from experiments.section import Pictures, source
from experiments.study import Amount, Explain, Explaining, Measuring, Same
from experiments.tables import IGNORANT_MARK, Row
from torchsite.attribution import METHODS
from torchsite.data import Dataset, load_dataset
from torchsite.errors import ConfigError, did_you_mean
from torchsite.evaluation.fingerprints import weights_of
from torchsite.metrics import CONTROL_MAPS
from torchsite.model import SITE, BlackBox, ImageClassifier
from torchsite.model.pretrained import read_tensors
from torchsite.objective import AdditiveEvidence, EquivarianceTerm, Term, TransformationTerm
from torchsite.randomness import make_rng
from torchsite.report.format import markdown_table
from torchsite.results import Result
from torchsite.shapes import Heatmaps
from torchsite.training import TrainingConfig, fit
from torchsite.transforms import TransformFamily

NAME = "leaderboard"
OWN, BLACK_BOX = "itself", "black_box"
SEEDS = (0, 1, 2)

# --- Rows: how a model is built, its terms, who explains it.

Told = Mapping[str, Any]
Build = Callable[[str, Told], ImageClassifier]
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
        | {IGNORANT_MARK + name: Same(CONTROL_MAPS[name]) for name in KNOW_NOTHING},
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


def read_entries(path: Path) -> tuple[Entry, ...]:
    """The entries that a file of the user's own names as `ENTRIES`."""
    if not path.is_file():
        raise ConfigError(f"{path}: expected a Python file that defines ENTRIES, found none there")
    found = runpy.run_path(str(path)).get("ENTRIES", ())
    if not found or not all(isinstance(entry, Entry) for entry in found):
        raise ConfigError(f"{path}: expected ENTRIES, a list of experiments.leaderboard.Entry")
    return tuple(found)


# --- Fields: the pictures, and how many minutes each training has.

COMMON: Mapping[str, Any] = {
    "epochs": 500,  # more than the minutes allow: the clock decides
    "batch_size": 32,
    "learning_rate": 2e-3,
    "schedule": "cosine",
    "warm_up": 0.1,
    "views": ("upright", "posed"),
    "corners": ("black", "mean", "mean", "other"),
    "flip": True,
    "validate_every": 500,
    "n_validation": 250,
    "collapse_patience": 500,
}
FAMILY = TransformFamily()


@dataclass(frozen=True, eq=False)
class Halves:
    """Pictures to learn from and to be measured with; the regions of the objects, where they are known."""

    train: Dataset
    test: Dataset
    regions: Heatmaps | None = None


@dataclass(frozen=True)
class Field:
    """A data set of the board: its pictures, the minutes of one core of each training, the features."""

    name: str
    title: str
    minutes: float
    load: Callable[[], Halves]
    features: str = "two_scales"
    options: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)

    def config(self, **changes: Any) -> TrainingConfig:
        """The common training on this data set."""
        given = {**COMMON, "seconds": 60 * self.minutes, "family": FAMILY, **self.training, **changes}
        return TrainingConfig(**given)

    def model(self, entry: Entry, train: Dataset, seed: int) -> ImageClassifier:
        """The model of an entry, whose first weights follow the seed."""
        channels, height, width = train.images.shape[1:]
        told = {"image_shape": (channels, height, width), "classes": train.classes, "family": FAMILY}
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return entry.build(
                self.features, told | ({"extractor_options": dict(self.options)} if self.options else {})
            )


def _folder(name: str, size: int) -> Callable[[], Halves]:
    def half(split: str) -> Dataset:
        data = load_dataset(name, split, size=size)
        return data[torch.randperm(len(data), generator=make_rng(0, NAME, split))]

    return lambda: Halves(half("train"), half("test"))


def _objects(train: BamDataset, test: BamDataset) -> Halves:
    return Halves(train.labelled("object"), test.labelled("object"), test.regions.float())


def _bam() -> Halves:
    return _objects(*(real_half(half, 96) for half in ("train", "test")))


def _painted() -> Halves:
    halves = painted_halves(16)
    return _objects(halves.train, halves.test)


def _digits() -> Halves:
    return Halves(load_dataset("mnist_sample", "train")[:256], load_dataset("mnist_sample", "test")[:128])


FIELDS: tuple[Field, ...] = (
    Field("eurosat", "EuroSAT, 64 px", 5.0, _folder("eurosat-64px", 64)),
    Field("food10", "ten dishes of Food-101, 96 px", 8.0, _folder("food10", 96)),
    Field("cifar10", "CIFAR-10 at 64 px", 8.0, _folder("cifar10", 64)),
    Field("bam", "objects on scenes (BAM, 96 px)", 8.0, _bam),
)
_SMALL: Mapping[str, Any] = {
    "features": "small_cnn",
    "options": {"widths": (4, 8, 8), "depth": 5},
    "training": {"epochs": 1, "n_validation": 20},
}
QUICK_FIELDS: tuple[Field, ...] = (
    Field("digits", "embedded digits", 1.0, _digits, **_SMALL),
    Field("painted", "painted objects", 1.0, _painted, **_SMALL),
)

# --- Columns: the measures, on how many pictures, and the scores that are made of what they find.

MEASURES: Mapping[str, Amount] = {
    "patch_deletion": Amount(200, slow=40),
    "frame_control": Amount(200, slow=16),
    "grid_pointing": Amount(400, slow=40),
    "lerf_morf": Amount(100, slow=40),
}
OF_MODEL: Mapping[str, Amount] = {"accuracy": Amount(2000)}
FILL = "blur"
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "grid_pointing": {"confidence": 0.3, "sides": (2,)},
    "lerf_morf": {"fills": (FILL,), "fractions": (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)},
}
COLUMNS: tuple[Column, ...] = (
    Column("accuracy upright", "accuracy", ("untransformed",), of_model=True),
    Column("accuracy posed", "accuracy", ("transformed",), of_model=True),
    Column("patch deletion", "patch_deletion", ("correlation",), 0),
    Column("its floor", "patch_deletion", ("floor",), 0),
    Column("above its floor", "patch_deletion", ("correlation",), floor=("floor",)),
    Column("consistency, corners filled", "frame_control", ("filled", "calibrated")),
    Column("grid pointing (¼)", "grid_pointing", ("share",)),
    Column("LeRF − MoRF", "lerf_morf", ("fills", FILL, "difference")),
    Column("ms a map", "patch_deletion", better=-1),
)
SHOWN = (
    *("accuracy posed", "above its floor", "consistency, corners filled"),
    *("grid pointing (¼)", "LeRF − MoRF"),
)
ABOUT = """Every row learns with the same features, pretrained on ImageNet, on the same pictures, upright and
posed (±90°, ±25 %, corners filled in several ways), for the same minutes of one core on each data set. Scores
are means ± standard deviations over seeds, on the same test pictures in the same poses. *Above its floor*:
(patch deletion - floor) / (1 - floor), where the floor is the map of another picture. *LeRF − MoRF*: how much
later the probability falls if the least important pixels are blurred first than if the most important are.
The best of each column is bold. Rows that know nothing of any model come last: a score that they reach is no
merit.
"""

# --- The run.


@dataclass(frozen=True)
class Plan:
    """What is asked for: which entries on which data sets, with which seeds, in full or as a slice."""

    folder: Path
    entries: tuple[Entry, ...]
    fields: tuple[Field, ...]
    seeds: tuple[int, ...]
    quick: bool = False

    def place(self, of: Field, entry: Entry, seed: int) -> Path:
        """Where a training is."""
        return self.folder / "models" / f"{of.name}-{entry.name}-{seed}"


def plan(
    folder: Path,
    *,
    entries: Sequence[Entry] = ENTRIES,
    only: Sequence[str] = (),
    data: Sequence[str] = (),
    seeds: Sequence[int] = (),
    quick: bool = False,
) -> Plan:
    """The plan for some of the entries, data sets and seeds; all that are not named."""
    known = {one.name: one for one in (QUICK_FIELDS if quick else FIELDS)}
    for name in data:
        if name not in known:
            raise ConfigError(f"no data set {name!r} on the board: {did_you_mean(name, known)}")
    fields = tuple(one for name, one in known.items() if name in data or not data)
    return Plan(folder, find(only, entries), fields, tuple(seeds) or SEEDS[: 2 if quick else None], quick)


def measure(folder: Path, **choice: Any) -> int:
    """The steps of some of the entries, data sets and seeds, for a lane of its own; how many there are."""
    return sum(1 for _ in steps(plan(folder, **choice)))


def run(
    folder: Path,
    *,
    entries: Sequence[Entry] = ENTRIES,
    only: Sequence[str] = (),
    add: Path | None = None,
    data: Sequence[str] = (),
    seeds: Sequence[int] = (),
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Train and measure what is not in `folder` yet; the result has the rows, data sets and seeds asked for.

    `add` is a file of one's own whose `ENTRIES` are those of the board from then on.
    """
    started = time.monotonic()
    chosen = read_entries(add) if add is not None else entries
    asked = plan(folder, entries=chosen, only=only, data=data, seeds=seeds, quick=quick)
    rows = list(steps(asked, progress=progress))
    values = {"boards": {one.name: board(asked, one, rows) for one in asked.fields}}
    config = {
        "quick": quick,
        "seeds": list(asked.seeds),
        "minutes": {one.name: one.minutes for one in asked.fields},
        "features": {one.name: one.features for one in asked.fields},
        "training": {name: list(v) if isinstance(v, tuple) else v for name, v in COMMON.items()},
        "terms": {one.name: [{"name": t.name, **asdict(t)} for t in one.terms] for one in asked.entries},
        "weights": {f"{row['field']}/{row['entry']}-{row['seed']}": row["weights"] for row in rows},
    }
    return save_result(Result(NAME, values, config, 0, time.monotonic() - started), folder)


def steps(asked: Plan, *, progress: bool = False) -> Iterator[Row]:
    """Train and measure whatever is not there yet; seed by seed, so that a stopped run has whole boards."""
    of_model = Explaining("model", Same(CONTROL_MAPS["random"]))
    for one in asked.fields:
        halves = one.load()
        for seed, entry in product(asked.seeds, asked.entries):
            model = trained(asked, one, entry, seed, halves, progress)
            title, place = f"{one.name}-{entry.name}-{seed}", asked.folder / "steps"
            about = {"field": one.name, "entry": entry.name, "seed": seed, "weights": weights_of(model)}
            measuring = Measuring(title, model, halves.test, place, OPTIONS, regions=halves.regions)
            asks = [(of_model, OF_MODEL)]
            for name, on in entry.explainers.items():
                slow = getattr(on, "is_slow", lambda: False)()
                asks.append((Explaining(name, on, slow=slow), MEASURES))
            for explaining, measures in asks:
                for row in measuring.rows(explaining, measures, asked.quick):
                    yield {**about, **row}


def trained(
    asked: Plan, one: Field, entry: Entry, seed: int, halves: Halves, progress: bool
) -> ImageClassifier:
    """The model of an entry, from its place or trained; a minute by the clock is a minute of one core."""
    model, place = one.model(entry, halves.train, seed), asked.place(one, entry, seed)
    if not is_finished(place):
        config, threads = one.config(seed=seed, terms=entry.terms), torch.get_num_threads()
        where: dict[str, Any] = {"folder": place, "resume": True, "progress": progress}
        torch.set_num_threads(1)
        try:
            fit(model, halves.train, config, validation=halves.test, **where)
        finally:
            torch.set_num_threads(threads)
    model.load_state_dict(read_tensors(place / "model", dict(model.state_dict())))
    return model.eval()


def board(asked: Plan, one: Field, rows: Sequence[Row]) -> dict[str, Any]:
    """All rows on one data set, and what the trainings took."""
    lines, took = [], {}
    for entry in asked.entries:
        own = [row for row in rows if (row["field"], row["entry"]) == (one.name, entry.name)]
        for explainer in entry.explainers:
            found = [row for row in own if row["method"] in (explainer, "model")]
            lines.append(row_of(entry.name, entry.title, explainer, found, COLUMNS))
        runs = [Result.load(asked.place(one, entry, seed) / "result.json") for seed in asked.seeds]
        took[entry.name] = {
            "minutes": [run.seconds / 60 for run in runs],
            "pmac": [run.config["budget"]["pmac"] for run in runs],
        }
    return {"title": one.title, "seeds": list(asked.seeds), "rows": lines, "took": took}


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """The scores that matter most as dots, one for each seed."""
    return {NAME: dots(result.values["boards"], SHOWN)}


def section(result: Result, pictures: Pictures) -> str:
    """All boards, what they say of SITE in plain words, and what the trainings took."""
    parts = [
        f"## Leaderboard: self-explaining models and post-hoc methods\n\n{source(result)}\n\n{ABOUT}",
        pictures.chart(NAME, "Five scores of every row, a dot for each seed"),
    ]
    header = ["training of one seed", "minutes of one core", "PMAC"]
    for found in result.values["boards"].values():
        seeds = ", ".join(str(seed) for seed in found["seeds"])
        costs = [
            [name, *(f"{mean(one):.2g}" for one in took.values())] for name, took in found["took"].items()
        ]
        words = f"\n### {found['title']}\n\nSeeds {seeds}. {first_words(found, COLUMNS)}\n\n"
        parts.append(words + table_of_rows(found, COLUMNS) + "\n" + markdown_table(header, costs))
    return "".join(parts)
