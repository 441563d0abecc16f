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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from matplotlib.figure import Figure

from experiments.boards import Board, Column, agreement, board_of, dots, first_words, table_of
from experiments.entries import ENTRIES, Entry, read_entries
from experiments.entries import with_method as with_method
from experiments.fields import COMMON, FIELDS, QUICK_FIELDS, Field, Halves, chosen
from experiments.measuring import Asked, Explaining, Measures, Measuring, same
from experiments.recipes import is_finished
from experiments.section import Pictures
from experiments.study import Arrays, Found, Run, Study
from experiments.tables import Row, counts
from torchsite.evaluation.comparison import MODEL
from torchsite.evaluation.fingerprints import weights_of
from torchsite.metrics import CONTROL_MAPS
from torchsite.model import ImageClassifier
from torchsite.model.pretrained import read_tensors
from torchsite.randomness import Rng
from torchsite.report.format import markdown_table
from torchsite.results import Result
from torchsite.training import fit
from torchsite.transforms import AffineTransform, Transform, TransformFamily

SEEDS = (0, 1, 2)

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
    model = one.model(entry.build, halves.train, seed)
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
