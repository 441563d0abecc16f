"""SITE against the black box, on MNIST, Fashion-MNIST, CIFAR-10 (the paper's Table 2) and EuroSAT.

Claim:    SITE classifies untransformed pictures at least as well as the paper's (MNIST 0.988, CIFAR-10 0.892)
          and about as well as the black box F2∘F1 of the same extractor, data, poses and epochs, while its
          explanation follows the picture.
Command:  torchsite reproduce mnist   (or fashion_mnist, cifar10, cifar10_cnn, eurosat)
Cost:     MNIST: about 40 minutes for the three stages of SITE and 20 for those of the black box on two cores;
          CIFAR-10: hours, as its recipe says; seconds with --quick, which takes some embedded digits whatever
          the data.
"""

import time
from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from experiments.cache import save_result
from experiments.models import learnt, train_pair, training_seconds
from experiments.registry import Arrays
from experiments.section import Pictures, source
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.fingerprints import weights_of
from torchsite.report.format import HEADLINES, markdown_table, score_rows
from torchsite.results import Result

TITLES = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "cifar10_cnn": "CIFAR-10 with the small CNN",
    "eurosat": "EuroSAT",
}

# Accuracy on untransformed and transformed pictures, and raw self-consistency.
PAPER: Mapping[str, Mapping[str, float]] = {
    "mnist": {"site": 0.988, "black_box": 0.981},
    "cifar10": {
        "site": 0.892,
        "black_box": 0.862,
        "site_transformed": 0.89,
        "black_box_transformed": 0.89,
        "site_self_consistency": 0.8860,
    },
    "cifar10_cnn": {"site": 0.840, "black_box": 0.828},
}

# What a table of models shows beyond the headlines of one result.
MEASURES: Mapping[str, tuple[str, ...]] = {
    **HEADLINES,
    "pointing game, untransformed, τ = 0": ("pointing_game", "untransformed", "tau_0", "score"),
    "prototypes recognised, transformed": ("prototype_recognition", "transformed"),
}


def run(name: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train both (or take them from `folder`), measure both on the test set, write the result."""
    started = time.monotonic()
    pair = train_pair(name, folder, quick=quick, progress=progress)
    limit = 100 if quick else None
    found = {
        "site": evaluate(pair.site, pair.test, judge=pair.black_box, limit=limit),
        "black_box": evaluate(pair.black_box, pair.test, limit=limit),
    }
    values = {
        **{kind: result.values for kind, result in found.items()},
        "training": {kind: training_seconds(folder / kind) for kind in found},
        "paper": dict(PAPER.get(name, {})),
    }
    values["learnt"] = {kind: learnt(folder / kind) for kind in found}
    values["pmac"] = {kind: one["pmac"] for kind, one in values["learnt"].items()}
    config = {kind: result.config for kind, result in found.items()} | {"recipe": name, "quick": quick}
    config |= {"weights": {kind: weights_of(model) for kind, model in pair}}
    seed = found["site"].seed
    result = Result(f"accuracy_{name}", values, config, seed, time.monotonic() - started)
    return save_result(result, folder)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """None: this result is a table."""
    return {}


def section(result: Result, pictures: Pictures) -> str:
    """SITE, the black box and the paper's numbers side by side."""
    site, black_box = result.values["site"], result.values["black_box"]
    paper: Mapping[str, float] = result.values["paper"]
    rows = [[*row, paper_text(paper, row[0])] for row in score_rows(MEASURES, [site, black_box])]
    seconds: Mapping[str, float] = result.values["training"]
    minutes = (f"{seconds[kind] / 60:.1f}" for kind in ("site", "black_box"))
    rows.append(["training, minutes", *minutes, "–"])
    if "pmac" in result.values:  # older files have not counted it
        pmac = (f"{result.values['pmac'][kind]:.2f}" for kind in ("site", "black_box"))
        rows.append(["training, 10¹⁵ multiply-accumulates", *pmac, "–"])
    recipe = result.config["recipe"]
    return (
        f"## {TITLES.get(recipe, recipe)}: SITE and the black box\n\n"
        f"{source(result, recipe)}\n\n"
        f"{what_was_equal(result)}\n\n"
        + markdown_table(["", "SITE", "black box", "paper: SITE (black box)"], rows)
    )


def what_was_equal(result: Result) -> str:
    """What both models had the same of, and what not, as far as the file says."""
    said = ["Both have the same pictures and the same poses."]
    pmac, learnt = (result.values.get(name) for name in ("pmac", "learnt"))
    if learnt:
        site, other = (f"{one['steps']:,} steps of {one['views']:g}" for one in learnt.values())
        said.append(f"SITE took {site} views a picture, the black box {other}.")
    if pmac:
        ratio = pmac["site"] / pmac["black_box"]
        said.append(f"The arithmetic of SITE's training is {ratio:.2f} times that of the black box.")
    else:
        said.append("What their trainings cost in arithmetic was not counted.")
    return " ".join(said)


def paper_text(paper: Mapping[str, float], measure: str) -> str:
    """The paper's SITE (black box) for one measure, or a dash."""
    if measure == "accuracy, untransformed" and "site" in paper:
        return f"{paper['site']:.3f} ({paper['black_box']:.3f})"
    if measure == "accuracy, transformed" and "site_transformed" in paper:
        return f"{paper['site_transformed']:.2f} ({paper['black_box_transformed']:.2f})"
    if measure == "self-consistency, raw" and "site_self_consistency" in paper:
        return f"{paper['site_self_consistency']:.4f}"
    return "–"
