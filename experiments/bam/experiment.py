"""BAM: does the heatmap point at what the model was trained to see? (Appendix of the paper.)

SITE and the black box are trained twice on the same pictures, fruit and pets pasted on scenes: once to name
the object, once to name the scene. A good explanation shows the object to the one and the scene to the other.

Claim:    SITE is first on MCS (the object matters to the object model only), and on the pointing game when
          the picture is transformed: the object's region for the object model, the rest for the scene model.
Command:  torchsite reproduce bam     (starts from ImageNet: needs torchsite[pretrained])
Cost:     four trainings and all methods on all four models within 90 minutes on two cores; less than a minute
          with --quick, on painted shapes and patterns. Every model and every method is a step of its own.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.bam.data import BamHalves
from experiments.bam.models import LABELLINGS, QUICK, RECIPE, Models, halves_of, models_beside
from experiments.bam.pairs import POSES, Pairs, options_of
from experiments.bam.sheet import SHEET, draw_sheets, make_sheet
from experiments.cache import save_result, step
from experiments.models import KINDS, training_seconds
from experiments.recipes import load_recipe
from experiments.registry import Arrays
from experiments.section import CONSISTENCY, Pictures, Row, own_first, row_name, source, spoken
from experiments.study import Amount, Explaining, explainers
from torchsite.attribution import METHODS
from torchsite.configs import to_mapping
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import fingerprint, weights_of
from torchsite.report.format import estimate, look_up, markdown_table, method_name, score
from torchsite.results import Result

QUICK_METHODS = ("self_explanation", "gradient", "grad_cam", "excitation_backprop", "random")

# How many pictures each measure shows: of the test pictures, and of those with objects never seen.
MEASURES: Mapping[str, Mapping[str, Amount]] = {
    "test": {"bam": Amount(300, slow=100), "pointing_game": Amount(300, slow=100)},
    "held_out": {"bam": Amount(150, slow=5), "pointing_game": Amount(150, slow=5)},
}
TOLERANCES = (0, 3)
HELD_OUT_SHOWN = ("self_explanation", "grad_cam", "guided_backprop", "gradient", "random")

# The scores that decide, and where a row keeps them.
DECISIVE: Mapping[str, tuple[str, ...]] = {
    "MCS, untransformed": ("untransformed", "mcs"),
    "MCS, transformed": ("transformed", "mcs"),
    "pointing at objects, transformed": ("pointing objects", "transformed", "tau_0", "score"),
    "pointing at scenes, transformed": ("pointing scenes", "transformed", "tau_0", "score"),
}
OF_MODELS: Mapping[str, tuple[str, ...]] = {
    "accuracy, untransformed": ("accuracy", "untransformed"),
    "accuracy, transformed": ("accuracy", "transformed"),
    "scene accuracy with unseen objects": ("held_out accuracy", "untransformed"),
    **{f"self-consistency, {name}": ("self_consistency", name) for name in CONSISTENCY},
}

INTRODUCTION = """Fruit and pets ({objects} classes) pasted on {scenes} classes of scenes, {n_train:,}
pictures to train on, {n_test:,} to test with. SITE and the black box are trained twice, by object and by
scene, {minutes} minutes in all with every measure. Of each method, the map of the true class is taken from
the model of that kind; methods that read a layer read the features of the extractor on either model; the
number of pictures depends on the cost. MCS has a floor of 0; IDR and IIR are shown over what the same
comparison gives between different pictures. Pointing is at τ = 0, with what any point gets in brackets.
What was tried stands in [design/bam.md](design/bam.md).
"""
FIRST = """**Of the first recipe** (`bam_first`): maps were not asked to be true then. What the present
recipe gives for the model of objects stands at the end of [design/bam.md](design/bam.md).
"""


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train four models (or take them from `folder`), measure every method on both kinds, keep two sheets."""
    started = time.monotonic()
    halves = halves_of(quick, progress)
    models = models_beside(folder, halves, quick=quick, progress=progress)
    methods = [m for m in METHODS if not quick or m in QUICK_METHODS]
    table = [row for kind in KINDS for row in rows_of(kind, models[kind], halves, methods, folder, quick)]
    sheet, arrays = make_sheet(models, halves.test, [m for m in SHEET if m in methods])
    both = {f"{kind}, {by}": (kind, by) for kind in KINDS for by in LABELLINGS}
    values = {
        "accuracy": {
            name: of_model(kind, by, models[kind], halves, folder) for name, (kind, by) in both.items()
        },
        "training": {name: training_seconds(folder / f"{kind}-{by}") for name, (kind, by) in both.items()},
        "table": table,
        "verdict": verdict(table),
        "sheet": sheet,
    }
    config = {
        "recipe": RECIPE,
        "terms": [to_mapping(term) for term in load_recipe(RECIPE).training.terms],
        "changes": dict(QUICK) if quick else {},
        "n_train": len(halves.train),
        "n_test": len(halves.test),
        "n_held_out": len(halves.held_out),
        "objects": list(halves.train.object_classes),
        "scenes": list(halves.train.scene_classes),
        "weights": {kind: models[kind].weights for kind in KINDS},
        "quick": quick,
    }
    result = Result("bam", values, config, 0, _seconds(values, time.monotonic() - started))
    return save_result(result, folder, arrays)


def of_model(kind: str, by: str, models: Models, halves: BamHalves, folder: Path) -> Mapping[str, Any]:
    """Accuracy and, for SITE, self-consistency on the test pictures; scenes also with objects never seen."""
    model, data = models.by(by), halves.test.labelled(by)
    config = {"weights": weights_of(model), "pictures": fingerprint(data.images)}

    def find() -> dict[str, Any]:
        found = dict(evaluate(model, data, batch_size=50).values)
        if by == "scene":
            strangers = evaluate(model, halves.held_out.labelled(by), batch_size=50)
            found["held_out accuracy"] = strangers.values["accuracy"]
        return found

    return step(folder / "steps" / f"{kind}-{by}-evaluation.json", config, find).values


def rows_of(
    kind: str, models: Models, halves: BamHalves, methods: Sequence[str], folder: Path, quick: bool
) -> list[Row]:
    """Every method on one kind of model, on the test pictures and on those with objects never seen."""
    options = {"pointing_game": {"tolerances": TOLERANCES}}
    pairs = {
        part: Pairs(f"{kind}-{part}", models, bam, folder / "steps", named=part == "test", options=options)
        for part, bam in (("test", halves.test), ("held_out", halves.held_out))
    }
    return [
        {
            "model": kind,
            "method": one.name,
            "test": gathered(pairs["test"], one, MEASURES["test"], quick),
            "held_out": gathered(pairs["held_out"], one, MEASURES["held_out"], quick),
        }
        for one in explainers(models.objects, methods, options_of)
    ]


def gathered(pairs: Pairs, one: Explaining, measures: Mapping[str, Amount], quick: bool) -> dict[str, Any]:
    """All of BAM's scores for one method; `{"reason": …}` if it does not apply to these models."""
    found: dict[str, Any] = {"seconds": 0.0}
    for metric, n, cell in pairs.cells(one, measures, quick):
        if cell.reason is not None or cell.values is None:
            return {"reason": cell.reason or ""}
        found |= {"seconds": found["seconds"] + cell.seconds, "n_images": n}
        if metric == "bam":
            found |= cell.values
        else:
            found[f"pointing {metric.partition(' ')[0]}s"] = {
                pose: {tau: _without_classes(score) for tau, score in cell.values[pose].items()}
                for pose in POSES
            }
    return found


def _without_classes(score: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in score.items() if name != "per_class"}


def verdict(table: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Who is first on MCS and on pointing under transformation, and by how much; all that have a value."""
    return {name: _ranking(table, path) for name, path in DECISIVE.items()}


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """One picture as it is, and moved, with the maps of all methods."""
    return draw_sheets(result, arrays)


def section(result: Result, pictures: Pictures) -> str:
    """Accuracy of the four models, all methods in both poses, objects never seen, and who is first."""
    config, lines = result.config, own_first(result.values["table"])
    introduction = INTRODUCTION.format(
        objects=len(config["objects"]),
        scenes=len(config["scenes"]),
        n_train=config["n_train"],
        n_test=config["n_test"],
        minutes=f"{result.seconds / 60:.0f}",
    )
    known = [row for row in lines if row["method"] in HELD_OUT_SHOWN]
    refused = [row for row in lines if "reason" in row["test"]]
    parts = [
        "## BAM: objects on scenes, from ImageNet\n",
        f"{source(result)}\n",
        introduction,
        *([] if "terms" in config else [FIRST]),
        _of_models(result),
        "\n".join(f"- {sentence}" for sentence in verdict_sentences(result.values["verdict"])) + "\n",
        "### Pictures as they are\n",
        _of_methods(lines, "test", "untransformed"),
        "### Pictures in random poses\n",
        _of_methods(lines, "test", "transformed"),
        "### Objects of classes never seen (COCO), pictures in random poses\n",
        "The object model explains the class it names: is it drawn to an object that it does not know?\n",
        _of_methods(known, "held_out", "transformed"),
        *(f"- {row_name(row)} is not defined: {row['test']['reason']}" for row in refused),
        "\nThe sheets of one picture, as it is and moved, are in the folder of the run.\n",
    ]
    return "\n".join(parts)


def verdict_sentences(verdict: Mapping[str, dict[str, Any]]) -> list[str]:
    """Who is first, and how far SITE's own explanation is from it."""
    sentences = []
    for measure, found in verdict.items():
        if found["first"] is None or found["own"] is None:
            continue
        scores = list(found["scores"].items())
        if found["own rank"] == 1:
            rest = f"; next is {spoken(scores[1][0])} with {scores[1][1]:.3f}" if len(scores) > 1 else ""
            sentences.append(f"{measure}: SITE itself is first with {found['own']:.3f}{rest}.")
        else:
            name, score = scores[0]
            sentences.append(
                f"{measure}: first is {spoken(name)} with {score:.3f}; SITE itself is number "
                f"{found['own rank']} with {found['own']:.3f}, {score - found['own']:.3f} less."
            )
    return sentences


def _seconds(values: Mapping[str, Any], now: float) -> float:
    """How long everything took, whether now or in an earlier part of the run."""
    parts = (part for row in values["table"] for part in (row["test"], row["held_out"]))
    measures = [part.get("seconds", 0.0) for part in parts]
    return max(now, sum(values["training"].values()) + sum(measures))


def _ranking(table: Sequence[Row], path: Sequence[str]) -> dict[str, Any]:
    scores: dict[str, float] = {}
    for row in table:
        value = look_up(row["test"], *path, "value")
        if value is not None and row["method"] != "random":
            scores[f"{row['method']} on {row['model']}"] = value
    order = sorted(scores, key=lambda name: -scores[name])
    own = "self_explanation on site"
    return {
        "first": order[0] if order else None,
        "scores": {name: scores[name] for name in order[:5]},
        "own rank": order.index(own) + 1 if own in order else None,
        "own": scores.get(own),
    }


def _of_models(result: Result) -> str:
    models: Mapping[str, Mapping[str, Any]] = result.values["accuracy"]
    seconds: Mapping[str, float] = result.values["training"]
    rows = [[name, *(score(found, *path) for found in models.values())] for name, path in OF_MODELS.items()]
    rows.append(["training, minutes", *(f"{seconds[name] / 60:.1f}" for name in models)])
    return markdown_table(["", *(name.replace("_", " ").replace("site", "SITE") for name in models)], rows)


def _of_methods(rows: Sequence[Row], part: str, pose: str) -> str:
    header = [
        "explainer",
        "MCS",
        "IDR (floor)",
        "IIR (floor)",
        "points at object",
        "points at scene",
        "pictures",
    ]
    found = [(row, row["test"] if part == "test" else row["held_out"]) for row in rows]
    return markdown_table(
        header, [_cells(row, scores, pose) for row, scores in found if "reason" not in scores]
    )


def _cells(row: Row, found: Mapping[str, Any], pose: str) -> list[str]:
    scores = found[pose]
    pointing = [found[f"pointing {what}"][pose]["tau_0"] for what in ("objects", "scenes")]
    return [
        row_name(row) if row["method"] != "self_explanation" else method_name(row["method"]),
        score(scores, "mcs"),
        _with_floor(scores["idr"], scores["idr_floor"]),
        _with_floor(scores["iir"], scores["iir_floor"]),
        *(_with_floor(hits["score"], hits["anywhere"]) for hits in pointing),
        str(found["n_images"]),
    ]


def _with_floor(found: Mapping[str, Any], floor: Mapping[str, Any]) -> str:
    return f"{estimate(found, 3, interval=False)} ({estimate(floor, 3, interval=False)})"
