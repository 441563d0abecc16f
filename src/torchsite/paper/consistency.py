"""Self-consistency of SITE and of every post-hoc method, on SITE and on the black box (the paper's Table 1).

Claim:    SITE's own explanation follows the picture better than any post-hoc one, on either model,
          calibrated by its floor and centred. The paper claims it for the raw score (0.8860 on CIFAR-10),
          where maps that hardly depend on the picture, such as RISE's, are ahead here.
Command:  torchsite reproduce cifar10_consistency   (or mnist_consistency)
Cost:     the whole test set, each picture in one pose; some hundred for the methods that ask many
          times (`PASSES`), RISE and extremal perturbation, which the paper left out, among them. CIFAR-10
          with the pyramid: 65 minutes of one core, about 35 on two, half of it for these two; each line of
          the result says what it cost. With --quick, a dozen digits.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchsite.configs import to_mapping
from torchsite.evaluation.methods import pictures_of_each
from torchsite.paper.methods import line_of, measured, quick_limits
from torchsite.paper.models import pair_beside
from torchsite.results import Result

FIGURES = ("raw", "floor", "calibrated", "centred")
N_TRANSFORMS = 1

# Raw self-consistency on CIFAR-10: on SITE, on the black box.
PAPER: Mapping[str, Mapping[str, tuple[float, float | None]]] = {
    "cifar10": {
        "self_explanation": (0.8860, None),
        "grad_cam": (0.8817, 0.8416),
        "guided_backprop": (0.7830, 0.8168),
        "excitation_backprop": (0.1159, 0.2460),
        "gradient": (0.7174, 0.6926),
        "linear_approximation": (0.8485, 0.4183),
        "deconvnet": (0.8591, 0.7721),
    }
}

PASSES = 45_000  # that a slow method may take: a few hundred pictures


def run(
    recipe: str,
    folder: Path,
    *,
    methods: Sequence[str] | None = None,
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Measure every method on both models of the recipe; finished methods are taken from `folder`."""
    started = time.monotonic()
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    limits = quick_limits() if quick else pictures_of_each(len(pair.test), PASSES)
    rows = measured(
        pair,
        "self_consistency",
        folder,
        n_pictures=limits,
        n_transforms=N_TRANSFORMS,
        methods=methods,
    )
    table = [line_of(*row) | _figures(row[2].values) for row in rows]
    values = {"table": table, "first": first(table), "paper": _paper(recipe)}
    family = to_mapping(pair.site.config.family)
    config = pair.description() | {"recipe": recipe, "family": family, "quick": quick}
    config["n_transforms"] = N_TRANSFORMS
    result = Result(f"{recipe}_consistency", values, config, 0, time.monotonic() - started)
    result.save(folder / f"{result.name}.json")
    return result


def first(table: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Who is first in each figure, among all methods on both models: "method on model"."""
    lines = [line for line in table if "self_consistency" in line]
    best = {}
    for name in ("raw", "calibrated", "centred"):
        scored = [line for line in lines if line["self_consistency"][name]["value"] is not None]
        if scored:
            line = max(scored, key=lambda line: line["self_consistency"][name]["value"])
            best[name] = f"{line['method']} on {line['model']}"
    return best


def _figures(values: Mapping[str, Any] | None) -> dict[str, Any]:
    return {} if values is None else {"self_consistency": {name: values[name] for name in FIGURES}}


def _paper(recipe: str) -> dict[str, list[float | None]]:
    return {method: list(scores) for method, scores in PAPER.get(recipe, {}).items()}
