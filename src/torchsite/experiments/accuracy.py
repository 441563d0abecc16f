"""SITE against the black box of the same budget, on MNIST and Fashion-MNIST (the paper's Table 2).

Claim:    SITE classifies untransformed digits at least as well as the paper's (0.988) while its explanation
          follows the picture; the black box F2∘F1 has the same encoder, data, poses and epochs.
Command:  torchsite reproduce mnist   (or fashion_mnist)
Cost:     about 20 minutes for SITE and 10 for the black box on two cores; seconds with --quick.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchsite.data import load_dataset
from torchsite.experiments.evaluation import evaluate
from torchsite.experiments.runs import QUICK, trained
from torchsite.model import BlackBox
from torchsite.results import Result

PAPER: Mapping[str, Mapping[str, float]] = {"mnist": {"site": 0.988, "black_box": 0.981}}


def run(name: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train both (or take them from `folder`), measure both on the test set, write the result."""
    started = time.monotonic()
    changes: dict[str, Any] = dict(QUICK) if quick else {}
    site = trained(name, folder / "site", changes, progress=progress)
    black_box = trained(name, folder / "black_box", changes | {"model.kind": "black_box"}, progress=progress)
    assert isinstance(black_box, BlackBox)
    test = load_dataset(changes.get("data", name), "test")
    limit = 100 if quick else None
    found = {
        "site": evaluate(site, test, judge=black_box, limit=limit),
        "black_box": evaluate(black_box, test, limit=limit),
    }
    values = {kind: result.values for kind, result in found.items()}
    values["training"] = {kind: Result.load(folder / kind / "result.json").seconds for kind in found}
    values["paper"] = PAPER.get(name, {})
    config = {kind: result.config for kind, result in found.items()} | {"recipe": name, "quick": quick}
    seed = found["site"].seed
    result = Result(f"accuracy_{name}", values, config, seed, time.monotonic() - started)
    result.save(folder / f"accuracy_{name}.json")
    return result
