"""True maps of the paper's small CNN on CIFAR-10, from three seeds.

Claim:    what is said of the maps holds for every seed, not for a lucky one. The published result has a
          further training whose kernels were shared over quarter turns; that option is gone.
Command:  torchsite reproduce cifar10_seeds
Cost:     three trainings of half an hour of one core each, four minutes to measure each; seconds with
          --quick, on embedded digits.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.cache import save_result, step
from experiments.models import N_QUICK, QUICK, n_trained_on, training_seconds
from experiments.recipes import load_recipe, pmac_of, train_or_load
from experiments.registry import Arrays, Figures
from experiments.section import Pictures, source
from experiments.spread import SEEDS, table_of_seeds
from torchsite.data import Dataset, load_dataset
from torchsite.evaluation.compare import compare
from torchsite.evaluation.evaluate import N_PROBED, evaluate
from torchsite.evaluation.fingerprints import fingerprint, weights_of
from torchsite.model import SITE
from torchsite.results import Result

RECIPE = "cifar10_cnn_true"
N_MAPS = 1000  # for mask-k, mosaics and the one map
SHARED = "quarter_turns"
CONFIDENCE = 0.5  # of the pictures in mosaics: additive models are modest
ROWS: Mapping[str, tuple[str, ...]] = {
    "accuracy, upright": ("accuracy", "untransformed"),
    "accuracy, turned and shifted": ("accuracy", "transformed"),
    "hiding a patch does what the map says": ("patch_deletion", "correlation"),
    "the same, the map of another picture": ("patch_deletion", "floor"),
    "the map follows, above its floor, all pictures": ("self_consistency", "calibrated"),
    "the same, corners black (pictures that were probed)": ("frame_control", "fills", "black", "calibrated"),
    "the same, corners in the mean colour": ("frame_control", "fills", "mean", "calibrated"),
    "the same, corners show another picture": ("frame_control", "fills", "other", "calibrated"),
    "the same, corners reflect the picture": ("frame_control", "fills", "reflection", "calibrated"),
    "evidence on grey pictures / real ones": ("frame_control", "evidence", "ratio"),
    "share of all maps that one map explains": ("one_map_share", "share"),
    "grid pointing, 2×2": ("grid_pointing", "share"),
    "mask-k, area of accuracy, black": ("mask_k", "accuracy", "area"),
    "mask-k, area of log-odds, black": ("mask_k", "log_odds", "area"),
}


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train from each seed (or take what is there), measure each."""
    started = time.monotonic()
    changes: dict[str, Any] = dict(QUICK) | {"batch_size": 100} if quick else {}
    name = changes.get("data", load_recipe(RECIPE).data)
    train, test = (load_dataset(name, split)[: N_QUICK[split] if quick else None] for split in N_QUICK)
    found, seconds, weights, pmac = {}, {}, {}, {}
    for key in map(str, SEEDS):
        place = folder / f"seed-{key}"
        model = train_or_load(
            RECIPE, place, changes | {"seed": int(key)}, data=(train, test), progress=progress
        )
        assert isinstance(model, SITE)
        weights[key], seconds[key] = weights_of(model), training_seconds(place)
        pmac[key] = pmac_of(RECIPE, model, n_trained_on(place))
        found[key] = _measured(model, test, folder / "steps" / f"{key}.json", quick)
    values = {"seeds": found, "training": seconds, "pmac": pmac}
    config = {"recipe": RECIPE, "seeds": list(SEEDS), "weights": weights, "n_images": len(test)}
    config |= {"n_probed": N_PROBED, "n_maps": N_MAPS, "quick": quick}
    return save_result(Result("cifar10_seeds", values, config, 0, time.monotonic() - started), folder)


def _measured(model: SITE, test: Dataset, path: Path, quick: bool) -> Mapping[str, Any]:
    config = {"weights": weights_of(model), "pictures": fingerprint(test.images)}
    limits = {"n_probed": 12, "n_maps": 100} if quick else {"n_probed": N_PROBED, "n_maps": N_MAPS}
    return step(path, config, lambda: measure(model, test, **limits)).values


def measure(model: SITE, test: Dataset, *, n_probed: int, n_maps: int) -> dict[str, Any]:
    """All scores of one model on the test pictures, and those of its own maps on the first `n_maps`."""
    of_maps = compare(
        model,
        data=test,
        methods=["self_explanation"],
        metrics=["mask_k", "one_map_share", "grid_pointing"],
        metric_options={"grid_pointing": {"confidence": CONFIDENCE}},
        family=model.config.family,
        n_transforms=1,
        limit=n_maps,
    )
    measured = evaluate(model, test, n_probed=n_probed).values
    return {**measured, **{cell.metric: cell.values for cell in of_maps.cells if cell.values is not None}}


def figures(result: Result, arrays: Arrays) -> Figures:
    """None."""
    del result, arrays
    return {}


def section(result: Result, pictures: Pictures) -> str:
    """Every score of each seed, their mean, how far they lie apart, and shared kernels if they were tried."""
    del pictures
    values, config = result.values, result.config
    pmac: Mapping[str, float] = values["pmac"]
    others = {"shared kernels": values[SHARED]} if SHARED in values else {}
    about_others = (
        " The last column is one training, seed 0, with kernels shared over quarter turns in features and "
        "generator."
    )
    return "\n".join(
        [
            "### The small CNN from three seeds\n",
            f"{source(result)}\n",
            f"SITE of the recipe `{config['recipe']}` ({pmac['0']:.2f}·10¹⁵ multiply-accumulates each) on "
            f"{config['n_images']:,} test pictures; patch deletion and corners on the first "
            f"{config['n_probed']}, mask-k, mosaics (of pictures named with {CONFIDENCE} or more) and the "
            f"one map on the first {config['n_maps']:,}.{about_others if others else ''}\n",
            table_of_seeds(ROWS, values["seeds"], others),
        ]
    )
