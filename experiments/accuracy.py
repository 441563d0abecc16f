"""SITE against the black box, on MNIST, Fashion-MNIST, CIFAR-10 (the paper's Table 2) and EuroSAT.

Claim:    SITE classifies untransformed pictures at least as well as the paper's (MNIST 0.988, CIFAR-10 0.892)
          and about as well as the black box F2∘F1 of the same extractor, data, poses and epochs, while its
          explanation follows the picture.
Command:  torchsite reproduce mnist   (or fashion_mnist, cifar10, cifar10_cnn, eurosat)
Cost:     MNIST: about 40 minutes for the three stages of SITE and 20 for those of the black box on two cores;
          CIFAR-10: hours, as its recipe says; seconds with --quick, which takes some embedded digits whatever
          the data.
"""

from collections.abc import Mapping

from experiments.models import KINDS, learnt, train_pair, training_seconds
from experiments.section import Pictures
from experiments.study import Found, Run, Study
from torchsite.evaluation.evaluate import evaluate
from torchsite.report.format import HEADLINES, NOTHING, markdown_table, score_rows
from torchsite.results import Result

# SITE (black box).
PAPER: Mapping[str, Mapping[str, str]] = {
    "mnist": {"accuracy, untransformed": "0.988 (0.981)"},
    "cifar10": {
        "accuracy, untransformed": "0.892 (0.862)",
        "accuracy, transformed": "0.89 (0.89)",
        "self-consistency, raw": "0.8860",
    },
    "cifar10_cnn": {"accuracy, untransformed": "0.840 (0.828)"},
}
# What a table of models shows beyond the headlines of one result.
MEASURES: Mapping[str, tuple[str, ...]] = {
    **HEADLINES,
    "pointing game, untransformed, τ = 0": ("pointing_game", "untransformed", "tau_0", "score"),
    "prototypes recognised, transformed": ("prototype_recognition", "transformed"),
}


def find(run: Run) -> Found:
    """Both trained, or taken from the folder, and measured on the test set; what their trainings took."""
    pair = train_pair(run.recipe, run.folder, quick=run.quick, progress=run.progress)
    limit = 100 if run.quick else None
    found = {
        "site": evaluate(pair.site, pair.test, judge=pair.black_box, limit=limit),
        "black_box": evaluate(pair.black_box, pair.test, limit=limit),
    }
    counted = {kind: learnt(run.folder / kind) for kind in KINDS}
    values = {
        **{kind: result.values for kind, result in found.items()},
        "training": {kind: training_seconds(run.folder / kind) for kind in KINDS},
        "learnt": counted,
        "pmac": {kind: one["pmac"] for kind, one in counted.items()},
    }
    config = {kind: result.config for kind, result in found.items()}
    return Found(values, config=config | {"weights": pair.description()["weights"]})


def text(result: Result, pictures: Pictures) -> str:
    """SITE, the black box and the paper's numbers side by side."""
    recipe, values = result.config["recipe"], result.values
    scores = score_rows(MEASURES, [values[kind] for kind in KINDS])
    rows = [[*row, PAPER.get(recipe, {}).get(row[0], NOTHING)] for row in scores]
    minutes = (f"{values['training'][kind] / 60:.1f}" for kind in KINDS)
    rows.append(["training, minutes", *minutes, NOTHING])
    if "pmac" in values:  # older files have not counted it
        pmac = (f"{values['pmac'][kind]:.2f}" for kind in KINDS)
        rows.append(["training, 10¹⁵ multiply-accumulates", *pmac, NOTHING])
    table = markdown_table(["", "SITE", "black box", "paper: SITE (black box)"], rows)
    return f"{what_was_equal(result)}\n\n{table}"


def what_was_equal(result: Result) -> str:
    """What both models had the same of, and what not, as far as the file says."""
    said = ["Both have the same pictures and the same poses."]
    pmac, counted = (result.values.get(name) for name in ("pmac", "learnt"))
    if counted:
        site, other = (f"{one['steps']:,} steps of {one['views']:g}" for one in counted.values())
        said.append(f"SITE took {site} views a picture, the black box {other}.")
    if pmac:
        ratio = pmac["site"] / pmac["black_box"]
        said.append(f"The arithmetic of SITE's training is {ratio:.2f} times that of the black box.")
    else:
        said.append("What their trainings cost in arithmetic was not counted.")
    return " ".join(said)


STUDY = Study("accuracy_{}", "## {}: SITE and the black box", find=find, text=text, command="{}")
