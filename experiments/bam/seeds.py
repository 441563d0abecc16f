"""The model of objects from three seeds: how much of what is said of it is the luck of a training?

Claim:    much of it is: two of three seeds end alike, one far behind in accuracy, pointing and truth. How
          well maps follow the picture is the same in all.
Command:  torchsite reproduce bam_seeds   (starts from ImageNet: needs torchsite[pretrained])
Cost:     two trainings of 16 minutes of one core (the first seed's is that of `reproduce bam`, if it is there
          beside), and three minutes to measure each; seconds with --quick, on painted shapes.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.bam.data import BamHalves
from experiments.bam.models import halves_for, place_of, settings_of, terms_of_recipe, train_one
from experiments.bam.objects import N_MAPS, N_PROBED, N_QUICK, ROWS, measure
from experiments.cache import save_result, step
from experiments.models import training_seconds
from experiments.registry import Arrays, Figures
from experiments.section import Pictures, source
from experiments.spread import SEEDS, table_of_seeds
from torchsite.evaluation.fingerprints import fingerprint, weights_of
from torchsite.model import SITE
from torchsite.results import Result


def run(folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Train the model of objects from each seed (or take it), measure each."""
    started = time.monotonic()
    settings = settings_of("bam", quick)
    halves = halves_for(settings, quick=quick, progress=progress)
    found, seconds, weights = {}, {}, {}
    for seed in SEEDS:
        place = folder.with_name("bam-quick" if quick else "bam") if seed == 0 else folder / f"seed-{seed}"
        model = train_one("site", "object", halves, place, settings | {"seed": seed}, progress)
        assert isinstance(model, SITE)
        weights[str(seed)] = weights_of(model)
        seconds[str(seed)] = training_seconds(place_of(place, "site", "object"))
        found[str(seed)] = _measured(model, halves, folder / "steps" / f"seed-{seed}.json", quick)
    config = {
        "recipe": "bam",
        "terms": terms_of_recipe(),
        "seeds": list(SEEDS),
        "weights": weights,
        "n_images": len(halves.test),
        "quick": quick,
    }
    values = {"seeds": found, "training": seconds}
    return save_result(Result("bam_seeds", values, config, 0, time.monotonic() - started), folder)


def _measured(model: SITE, halves: BamHalves, path: Path, quick: bool) -> Mapping[str, Any]:
    config = {"weights": weights_of(model), "pictures": fingerprint(halves.test.images)}
    n_probed, n_maps = (N_QUICK, N_QUICK) if quick else (N_PROBED, N_MAPS)
    return step(path, config, lambda: measure(model, halves, n_probed=n_probed, n_maps=n_maps)[0]).values


def figures(result: Result, arrays: Arrays) -> Figures:
    """None."""
    del result, arrays
    return {}


def section(result: Result, pictures: Pictures) -> str:
    """Every score of each seed, their mean and how far they lie apart."""
    del pictures
    seeds: Mapping[str, Any] = result.values["seeds"]
    return "\n".join(
        [
            "### The model of objects from three seeds\n",
            f"{source(result)}\n",
            f"The recipe `{result.config['recipe']}` from seeds {', '.join(seeds)}, measured as the model "
            "that ships (which is the first of them, stored in half precision).\n",
            table_of_seeds({title: path for title, (path, _) in ROWS.items()}, seeds),
        ]
    )
