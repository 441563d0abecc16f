"""Three pictures and their explanations, as they are and moved (the paper's Figure 3).

Claim:    the explanation stands on the main parts of the thing, and on the same when the picture is moved.
Command:  torchsite reproduce cifar10_explanations   (or mnist_explanations)
Cost:     one pass over the test set to find pictures that are classified correctly; seconds.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchsite.paper.models import pair_beside
from torchsite.paper.shown import explained, first_right, keep, predictions, preferred
from torchsite.results import Result

N_SHOWN = 3
SHOWN: Mapping[str, Sequence[str]] = {"cifar10": ("airplane", "dog", "automobile")}


def run(recipe: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Explain the first correctly classified picture of three classes, the paper's where there are any."""
    started = time.monotonic()
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    classes = preferred(pair.test, SHOWN.get(recipe, ()))
    rows = first_right(predictions(pair.site, pair.test), pair.test, classes, 1)[:N_SHOWN]
    notes, arrays = explained(pair.site, pair.test, rows)
    config = pair.description() | {"recipe": recipe, "quick": quick}
    name = f"{recipe}_explanations"
    return keep(name, folder, {"pictures": notes}, config, arrays, time.monotonic() - started)
