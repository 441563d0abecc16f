"""SITE against the black box of the same budget, on MNIST, Fashion-MNIST and CIFAR-10 (the paper's Table 2).

Claim:    SITE classifies untransformed pictures at least as well as the paper's (MNIST 0.988, CIFAR-10 0.892)
          and about as well as the black box F2∘F1 of the same extractor, data, poses and epochs, while its
          explanation follows the picture.
Command:  torchsite reproduce mnist   (or fashion_mnist, cifar10, cifar10_cnn)
Cost:     MNIST: about 20 minutes for SITE and 10 for the black box on two cores; CIFAR-10: hours, as its
          recipe says; seconds with --quick, which takes some embedded digits whatever the data.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchsite.evaluation.evaluate import evaluate
from torchsite.paper.models import train_pair
from torchsite.results import Result

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


def run(name: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train both (or take them from `folder`), measure both on the test set, write the result."""
    started = time.monotonic()
    pair = train_pair(name, folder, quick=quick, progress=progress)
    limit = 100 if quick else None
    found = {
        "site": evaluate(pair.site, pair.test, judge=pair.black_box, limit=limit),
        "black_box": evaluate(pair.black_box, pair.test, limit=limit),
    }
    values: dict[str, Any] = {kind: result.values for kind, result in found.items()}
    values["training"] = {kind: Result.load(folder / kind / "result.json").seconds for kind in found}
    values["paper"] = dict(PAPER.get(name, {}))
    config = {kind: result.config for kind, result in found.items()} | {"recipe": name, "quick": quick}
    seed = found["site"].seed
    result = Result(f"accuracy_{name}", values, config, seed, time.monotonic() - started)
    result.save(folder / f"accuracy_{name}.json")
    return result
