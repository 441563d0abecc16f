"""Example sheets, class by class: three pictures each, as they are and moved (the paper's appendix).

Claim:    what Figure 3 shows for three pictures holds for every class.
Command:  torchsite reproduce cifar10_examples   (or mnist_examples)
Cost:     one pass over the test set to find pictures that are classified correctly; seconds.
"""

import time
from pathlib import Path

from torchsite.paper.models import pair_beside
from torchsite.paper.shown import explained, first_right, keep, predictions
from torchsite.results import Result

N_PER_CLASS = 3


def run(recipe: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Explain the first correctly classified pictures of every class; a class may have fewer than three."""
    started = time.monotonic()
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    classes = range(len(pair.test.classes))
    rows = first_right(predictions(pair.site, pair.test), pair.test, classes, N_PER_CLASS)
    notes, arrays = explained(pair.site, pair.test, rows)
    config = pair.description() | {"recipe": recipe, "quick": quick, "n_per_class": N_PER_CLASS}
    name = f"{recipe}_examples"
    return keep(name, folder, {"pictures": notes}, config, arrays, time.monotonic() - started)
