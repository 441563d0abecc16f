"""The leaderboard: models that explain themselves and post-hoc methods, same features, same minutes.

Claim:    none in advance. Every row learns with the same pretrained features (`two_scales`), on the same
          pictures in the same views, for the same minutes of one core; every explainer is measured on the
          same pictures and poses, beside map-makers that know nothing. Where SITE is not first, the page
          says so.
Command:  torchsite reproduce leaderboard     (some rows: --only b_cos,cam; one's own: --add FILE)
Cost:     entries × fields × seeds × the minutes of a field, and about as long again for all measures. Every
          training and every measure is a file: lanes share the work, `STUDY.measure("", folder,
          data=["bam"], seeds=[0])`. With --quick, a few digits and painted shapes, and features that start
          from nothing.

A row in ten lines: an `Entry` with a name, a title, a function that builds the model of what it is told, and
its terms; for a method on the black box, `with_method` (examples/leaderboard/your_own.py).
"""

import runpy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any, TypeVar

import torch
from matplotlib.figure import Figure

from experiments.bam.data import painted_halves, real_half
from experiments.bam.dataset import BamDataset
from experiments.boards import OWN, Board, Column, agreement, board_of, dots, first_words, table_of
from experiments.peers import BCos, PrototypeParts
from experiments.recipes import is_finished
from experiments.section import Pictures
from experiments.study import Arrays, Asked, Explain, Explaining, Found, Measures, Measuring, Run, Study, same
from experiments.tables import IGNORANT_MARK, Row, counts
from torchsite.attribution import METHODS
from torchsite.data import Dataset, load_dataset
from torchsite.errors import ConfigError, did_you_mean
from torchsite.evaluation.comparison import MODEL
from torchsite.evaluation.fingerprints import weights_of
from torchsite.metrics import CONTROL_MAPS
from torchsite.model import SITE, BlackBox, ImageClassifier
from torchsite.model.pretrained import read_tensors
from torchsite.objective import AdditiveEvidence, EquivarianceTerm, Term, TransformationTerm
from torchsite.randomness import Rng, make_rng
from torchsite.report.format import markdown_table
from torchsite.results import Result
from torchsite.shapes import Heatmaps
from torchsite.training import TrainingConfig, fit
from torchsite.transforms import AffineTransform, Transform, TransformFamily

BLACK_BOX = "black_box"
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


Named = TypeVar("Named", "Entry", "Field")


def chosen(names: Sequence[str], known: Sequence[Named]) -> tuple[Named, ...]:
    """The entries, or data sets, of these names, all if none is named; a wrong name is an error."""
    by_name = {one.name: one for one in known}
    for name in names:
        if name not in by_name:
            raise ConfigError(f"no {name!r} on the board: {did_you_mean(name, by_name)}")
    return tuple(one for name, one in by_name.items() if name in names or not names)


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
        return data[torch.randperm(len(data), generator=make_rng(0, "leaderboard", split))]

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


@dataclass(frozen=True)
class QuarterTurns(TransformFamily):
    """The group of quarter turns, each element as likely as the others; pictures stay as a whole."""

    max_rotation: float = 180.0
    max_shift: float = 0.0

    def sample(self, n: int, *, rng: Rng) -> Transform:
        """None, one, two or three quarter turns."""
        return AffineTransform.rotation(90.0 * torch.randint(4, (n,), generator=rng))


FILL = "blur"
MEASURES: Measures = {
    "patch_deletion": Asked(200, slow=40),
    "frame_control": Asked(200, slow=16),
    "grid_pointing": Asked(400, slow=40, options={"confidence": 0.3, "sides": (2,)}),
    "lerf_morf": Asked(100, slow=40, options={"fills": (FILL,), "fractions": (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)}),
    "equivariance": Asked(200, slow=16, metric="self_consistency", family=QuarterTurns(), n_transforms=4),
}
OF_MODEL: Measures = {"accuracy": Asked(2000)}
COLUMNS: tuple[Column, ...] = (
    Column("accuracy", "accuracy", ("untransformed",), of_model=True),
    Column("patch deletion above its floor", "patch_deletion", ("correlation",), floor=("floor",)),
    Column("consistency, corners filled", "frame_control", ("filled", "calibrated")),
    Column("grid pointing (¼)", "grid_pointing", ("share",)),
    Column("LeRF − MoRF", "lerf_morf", ("fills", FILL, "difference")),
    Column("equivariance, quarter turns", "equivariance", ("raw",)),
    Column("ms a map", "patch_deletion", better=-1),
)
SHOWN = tuple(column.title for column in COLUMNS[:-2])
ABOUT = """Every row learns with the same features, pretrained on ImageNet, on the same pictures, upright and
posed (±90°, ±25 %, corners filled in several ways), for the same minutes of one core on each data set. Scores
are means ± standard deviations over seeds, on the same test pictures in the same poses. *Above its floor*:
(patch deletion - floor) / (1 - floor), where the floor is the map of another picture. *Corners filled*:
self-consistency, calibrated by its floor. *LeRF − MoRF* (Wang and Wang 2024): how much later the probability
falls if the least important pixels are blurred first than if the most important are. *Equivariance* (Crabbé
and van der Schaar 2023): the mean cosine of the map of a turned picture and the turned map, over quarter
turns, without a floor. The best of each column is bold. Rows that know nothing of any model come last: a
score that they reach is no merit.
"""
AGREEMENT = """
### Do the measures agree?

Spearman's rank correlation of each two columns over all rows, its mean over the data sets.

"""

# --- The run.


@dataclass(frozen=True)
class OnBoard:
    """What is asked for: which entries on which data sets, with which seeds."""

    entries: tuple[Entry, ...]
    fields: tuple[Field, ...]
    seeds: tuple[int, ...]

    @classmethod
    def of(
        cls,
        run: Run,
        entries: Sequence[Entry] = ENTRIES,
        only: Sequence[str] = (),
        add: Path | None = None,
        data: Sequence[str] = (),
        seeds: Sequence[int] = (),
    ) -> "OnBoard":
        """Some of the entries (`only`), data sets and seeds; all that are not named.

        `add` is a file of one's own whose `ENTRIES` are those of the board from then on.
        """
        fields = chosen(data, QUICK_FIELDS if run.quick else FIELDS)
        asked = chosen(only, entries if add is None else read_entries(add))
        return cls(asked, fields, tuple(seeds) or SEEDS[: 2 if run.quick else None])

    def rows(self, measures: Measures, run: Run) -> Iterator[Row]:
        """Train and measure what is not there yet; seed by seed, so that a stopped run has whole boards."""
        of_model = same(MODEL, CONTROL_MAPS["random"])
        for one in self.fields:
            halves = one.load()
            for seed, entry in product(self.seeds, self.entries):
                place = place_of(run, one, entry, seed)
                model = trained(place, one, entry, seed, halves, run.progress)
                about = {"field": one.name, "model": entry.name, "seed": seed, "weights": weights_of(model)}
                measuring = Measuring(place.name, model, halves.test, run.steps, halves.regions)
                asks = [(of_model, OF_MODEL)]
                for name, on in entry.explainers.items():
                    slow = getattr(on, "is_slow", lambda: False)()
                    asks.append((Explaining(name, on, slow=slow), measures))
                for explaining, of in asks:
                    for row in measuring.rows(explaining, of, run.quick):
                        yield {**about, **row, "values": row["values"] and slim(row["values"])}

    def description(self) -> Mapping[str, Any]:
        """The seeds, and how every model was trained."""
        return {
            "seeds": list(self.seeds),
            "minutes": {one.name: one.minutes for one in self.fields},
            "features": {one.name: one.features for one in self.fields},
            "training": {name: list(v) if isinstance(v, tuple) else v for name, v in COMMON.items()},
            "terms": {one.name: [{"name": t.name, **asdict(t)} for t in one.terms] for one in self.entries},
        }


def slim(values: Mapping[str, Any]) -> Row:
    """The figures of a measure without its curves and what it knows of each class."""
    return {
        name: slim(value) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if name != "curves" and not isinstance(value, list)
    }


def place_of(run: Run, of: Field, entry: Entry, seed: int) -> Path:
    """Where a training is."""
    return run.folder / "models" / f"{of.name}-{entry.name}-{seed}"


def trained(
    place: Path, one: Field, entry: Entry, seed: int, halves: Halves, progress: bool
) -> ImageClassifier:
    """The model of an entry, from its place or trained; a minute by the clock is a minute of one core."""
    model = one.model(entry, halves.train, seed)
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


def gather(rows: Sequence[Row], asked: OnBoard, run: Run) -> Found:
    """All rows, what they are called, and what the trainings took."""
    took: dict[str, dict[str, Any]] = {}
    for one, entry in product(asked.fields, asked.entries):
        runs = [Result.load(place_of(run, one, entry, seed) / "result.json") for seed in asked.seeds]
        took.setdefault(one.name, {})[entry.name] = {
            "minutes": [found.seconds / 60 for found in runs],
            "pmac": [found.config["budget"]["pmac"] for found in runs],
        }
    values = {
        "fields": {one.name: one.title for one in asked.fields},
        "models": {one.name: one.title for one in asked.entries},
        "took": took,
        "table": [{name: value for name, value in row.items() if name != "weights"} for row in rows],
    }
    weights = {f"{row['field']}/{row['model']}-{row['seed']}": row["weights"] for row in rows}
    return Found(values, config={"weights": weights})


# --- The page.


def boards(result: Result) -> dict[str, Board]:
    """The lines on each data set, by its title."""
    table, names = result.values["table"], result.values["models"]
    return {
        title: board_of([row for row in table if row["field"] == name], names, COLUMNS)
        for name, title in result.values["fields"].items()
    }


def draw(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """The scores that matter most as dots, one for each seed."""
    return {result.name: dots(boards(result), SHOWN)}


def text(result: Result, pictures: Pictures) -> str:
    """All boards, what they say of SITE in plain words, what the trainings took, how measures agree."""
    table, took, found = result.values["table"], result.values["took"], boards(result)
    minutes = sum(sum(one["minutes"]) for of in took.values() for one in of.values())
    hours = minutes / 60 + sum(row.get("seconds", 0.0) for row in table) / 3600
    seeds = ", ".join(str(seed) for seed in result.config["seeds"])
    parts = [
        f"{ABOUT}\n{counts(table)} Seeds {seeds}. All in all {hours:.1f} hours of one core.\n",
        pictures.chart(result.name, "The scores of every row, a dot for each seed"),
    ]
    header = ["training of one seed", "minutes of one core", "PMAC"]
    for (name, title), board in zip(result.values["fields"].items(), found.values(), strict=True):
        costs = [
            [result.values["models"][model], *(f"{mean(one):.2g}" for one in of.values())]
            for model, of in took[name].items()
        ]
        reasons = dict.fromkeys(
            f"- {row['method']} on {row['model']}, {row['metric']}: {row['reason']}"
            for row in table
            if row["field"] == name and "reason" in row
        )
        parts.append(f"\n### {title}\n\n{first_words(board, COLUMNS)}\n\n{table_of(board, COLUMNS)}\n")
        parts.append("\n".join([*reasons, ""]) + "\n" if reasons else "")
        parts.append(markdown_table(header, costs))
    return "".join([*parts, AGREEMENT, agreement([*found.values()], COLUMNS)])


STUDY = Study(
    "leaderboard",
    "## Leaderboard: self-explaining models and post-hoc methods",
    measures=MEASURES,
    on=OnBoard.of,
    gather=gather,
    text=text,
    draw=draw,
)
