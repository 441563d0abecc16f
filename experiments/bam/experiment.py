"""BAM: does the heatmap point at what the model was trained to see? (Appendix of the paper.)

SITE and the black box are trained twice on the same pictures, fruit and pets pasted on scenes: once to name
the object, once to name the scene. A good explanation shows the object to the one and the scene to the other.

Claim:    SITE is first on MCS (the object matters to the object model only), and on the pointing game when
          the picture is transformed: the object's region for the object model, the rest for the scene model.
Command:  torchsite reproduce bam     (starts from ImageNet: needs torchsite[pretrained])
Cost:     four trainings and all methods on all four models within 90 minutes on two cores; less than a minute
          with --quick, on painted shapes and patterns. Every model and every method is a step of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.bam.data import BamHalves
from experiments.bam.models import LABELLINGS, QUICK, RECIPE, halves_of, models_beside
from experiments.bam.pairs import POSES, OnParts, Part
from experiments.bam.sheet import SHEET, draw_sheets, make_sheet
from experiments.cache import step
from experiments.measuring import Asked
from experiments.models import KINDS, training_seconds
from experiments.recipes import load_recipe
from experiments.study import Found, Run, Study, kept
from experiments.tables import CONSISTENCY, Cell, Columns, Place, Row, Table, lines_of, row_name
from torchsite.attribution import METHODS
from torchsite.configs import to_mapping
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import fingerprint, weights_of
from torchsite.report.format import estimate, look_up, markdown_table, score
from torchsite.results import Result

QUICK_METHODS = ("self_explanation", "gradient", "grad_cam", "excitation_backprop", "random")
HELD_OUT_SHOWN = ("self_explanation", "grad_cam", "guided_backprop", "gradient", "random")
TAUS = {"tolerances": (0, 3)}
# How many pictures each measure shows: of the test pictures, and of those with objects never seen.
MEASURES = {
    "test": {"bam": Asked(300, slow=100), "pointing_game": Asked(300, slow=100, options=TAUS)},
    "held_out": {"bam": Asked(150, slow=5), "pointing_game": Asked(150, slow=5, options=TAUS)},
}
# The scores that decide, and where a line keeps them.
DECISIVE: Mapping[str, Place] = {
    "MCS, untransformed": ("test", "untransformed", "mcs"),
    "MCS, transformed": ("test", "transformed", "mcs"),
    "pointing at objects, transformed": ("test", "pointing objects", "transformed", "tau_0", "score"),
    "pointing at scenes, transformed": ("test", "pointing scenes", "transformed", "tau_0", "score"),
}
OF_MODELS: Mapping[str, Place] = {
    "accuracy, untransformed": ("accuracy", "untransformed"),
    "accuracy, transformed": ("accuracy", "transformed"),
    "scene accuracy with unseen objects": ("held_out accuracy", "untransformed"),
    **{f"self-consistency, {name}": ("self_consistency", name) for name in CONSISTENCY},
}
WORDS = """Fruit and pets ({objects} classes) pasted on {scenes} classes of scenes, {n_train:,}
pictures to train on, {n_test:,} to test with. SITE and the black box are trained twice, by object and by
scene, {minutes:.0f} minutes in all with every measure. Of each method, the map of the true class is taken
from the model of that kind; methods that read a layer read the features of the extractor on either model; the
number of pictures depends on the cost. MCS has a floor of 0; IDR and IIR are shown over what the same
comparison gives between different pictures. Pointing is at τ = 0, with what any point gets in brackets.
What was tried stands in [design/bam.md](design/bam.md).

"""
NEVER_SEEN = """### Objects of classes never seen (COCO), pictures in random poses

The object model explains the class it names: is it drawn to an object that it does not know?

"""


@dataclass(frozen=True, eq=False)
class OnHalves(OnParts):
    """The models of the experiment, and the pictures that they have learnt from."""

    halves: BamHalves
    quick: bool

    @classmethod
    def trained(cls, run: Run) -> "OnHalves":
        """Train the four models, or take them from the folder."""
        halves = halves_of(run.quick, run.progress)
        models = models_beside(run.folder, halves, quick=run.quick, progress=run.progress)
        parts = [
            Part("test", halves.test, MEASURES["test"]),
            Part("held_out", halves.held_out, MEASURES["held_out"], named=False),
        ]
        return cls(models, parts, KINDS, halves, run.quick)

    def description(self) -> Mapping[str, Any]:
        """The weights, the pictures, and how the models were trained."""
        return {
            **super().description(),
            "terms": [to_mapping(term) for term in load_recipe(RECIPE).training.terms],
            "changes": dict(QUICK) if self.quick else {},
            "n_train": len(self.halves.train),
            "objects": list(self.halves.train.object_classes),
            "scenes": list(self.halves.train.scene_classes),
        }


def gather(rows: Sequence[Row], found: OnHalves, run: Run) -> Found:
    """All scores, what is known of the four models by themselves, one picture explained by every method."""
    names = {f"{kind}, {by}": (kind, by) for kind in KINDS for by in LABELLINGS}
    values = {
        "table": kept(rows, keep),
        "accuracy": {name: of_model(*one, found, run.folder) for name, one in names.items()},
        "training": {name: training_seconds(run.folder / "-".join(one)) for name, one in names.items()},
    }
    methods = [method for method in SHEET if not found.quick or method in STUDY.quick_methods]
    sheet, arrays = make_sheet(found.models, found.halves.test, methods)
    return Found(values | {"sheet": sheet}, arrays)


def of_model(kind: str, by: str, found: OnHalves, folder: Path) -> Mapping[str, Any]:
    """Accuracy and, for SITE, self-consistency on the test pictures; scenes also with objects never seen."""
    model, data = found.models[kind].by(by), found.halves.test.labelled(by)
    config = {"weights": weights_of(model), "pictures": fingerprint(data.images)}

    def find() -> dict[str, Any]:
        values = dict(evaluate(model, data, batch_size=50).values)
        if by == "scene":
            strangers = evaluate(model, found.halves.held_out.labelled(by), batch_size=50)
            values["held_out accuracy"] = strangers.values["accuracy"]
        return values

    return step(folder / "steps" / f"{kind}-{by}-evaluation.json", config, find).values


def keep(row: Row) -> dict[str, Any]:
    """Under the name of the part: BAM's scores as they are, those of pointing without the classes."""
    values, (looked_at, _, pointing) = row["values"], row["metric"].partition(" ")
    if pointing:
        values = {
            f"pointing {looked_at}s": {
                pose: {
                    tau: {name: value for name, value in score.items() if name != "per_class"}
                    for tau, score in values[pose].items()
                }
                for pose in POSES
            }
        }
    return {row["part"]: values | {"n_images": row["n_images"]}}


def verdict(lines: Sequence[Row]) -> dict[str, str]:
    """Who is first, and how far SITE's own explanation is from it; not where it has no score."""
    said = {}
    for measure, path in DECISIVE.items():
        found = [(look_up(line, *path, "value"), line) for line in lines if line["method"] != "random"]
        order = sorted((one for one in found if one[0] is not None), key=lambda one: -one[0])
        whose = [(line["model"], line["method"]) for _, line in order]
        if (own := ("site", "self_explanation")) not in whose:
            continue
        rank, mine = whose.index(own) + 1, order[whose.index(own)][0]
        names = [f"{row_name(line)} with {value:.3f}" for value, line in order[:2]]
        if rank == 1:
            rest = f"; next is {names[1]}" if len(names) > 1 else ""
            said[measure] = f"SITE itself is first with {mine:.3f}{rest}."
        else:
            gap = order[0][0] - mine
            said[measure] = (
                f"first is {names[0]}; SITE itself is number {rank} with {mine:.3f}, {gap:.3f} less."
            )
    return said


def words(result: Result) -> str:
    """What was composed and trained, the four models, and who is first."""
    config, models, seconds = result.config, result.values["accuracy"], result.values["training"]
    rows = [[name, *(score(found, *path) for found in models.values())] for name, path in OF_MODELS.items()]
    rows.append(["training, minutes", *(f"{seconds[name] / 60:.1f}" for name in models)])
    counts = {name: len(config[name]) for name in ("objects", "scenes")}
    counts |= {name: config[name] for name in ("n_train", "n_test")}
    return (
        WORDS.format(minutes=result.seconds / 60, **counts)
        + markdown_table(["", *(n.replace("_", " ").replace("site", "SITE") for n in models)], rows)
        + "".join(f"\n- {measure}: {sentence}" for measure, sentence in verdict(lines_of(result)).items())
        + "\n\n"
    )


def scores(part: str, pose: str, heading: str, methods: Sequence[str] = ()) -> Table:
    """MCS, both rates and both ways of pointing, each beside what knows nothing gets."""

    def beside(path: Place, floor: Place) -> Cell:
        return lambda line: (
            f"{estimate(look_up(line, part, *path), 3, interval=False)} "
            f"({estimate(look_up(line, part, *floor), 3, interval=False)})"
        )

    columns: Columns = {
        "MCS": lambda line: score(line, part, pose, "mcs"),
        "IDR (floor)": beside((pose, "idr"), (pose, "idr_floor")),
        "IIR (floor)": beside((pose, "iir"), (pose, "iir_floor")),
        **{
            f"points at {what}": beside(
                *((f"pointing {what}s", pose, "tau_0", which) for which in ("score", "anywhere"))
            )
            for what in LABELLINGS
        },
        "pictures": lambda line: str(line[part]["n_images"]),
    }
    return Table(columns, lambda _: heading, shown=lambda line: scored(line, part, methods))


def scored(line: Row, part: str, methods: Sequence[str]) -> bool:
    """Whether a line has scores of a part of the pictures and is one of the methods, if any are named."""
    return "mcs" in (look_up(line, part, "transformed") or ()) and (not methods or line["method"] in methods)


def refused(result: Result) -> str:
    """What does not apply, and why."""
    table = result.values["table"]
    why = {row_name(row): row.get("reason") or look_up(row, "test", "reason") for row in table}
    return "".join(f"\n- {name} is not defined: {reason}" for name, reason in why.items() if reason) + "\n"


STUDY = Study(
    "{}",
    "## {}: objects on scenes, from ImageNet",
    [
        scores("test", "untransformed", "### Pictures as they are\n\n"),
        scores("test", "transformed", "### Pictures in random poses\n\n"),
        scores("held_out", "transformed", NEVER_SEEN, HELD_OUT_SHOWN),
    ],
    methods=tuple(METHODS),
    quick_methods=QUICK_METHODS,
    on=OnHalves.trained,
    gather=gather,
    words=words,
    notes=refused,
    show=draw_sheets,
)
