"""Three pictures and their explanations, as they are and moved (the paper's Figure 3).

Claim:    the explanation stands on the main parts of the thing, and on the same when the picture is moved.
Command:  torchsite reproduce cifar10_explanations   (or mnist_explanations)
Cost:     one pass over the test set to find pictures that are classified correctly; seconds.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from experiments.cache import save_result
from experiments.models import pair_beside
from experiments.registry import Arrays
from experiments.section import Pictures, head
from experiments.shown import Shown, explained, first_right, predictions, preferred, sheet_of
from torchsite.report.format import markdown_table
from torchsite.results import Result

N_SHOWN = 3
SHOWN: Mapping[str, Sequence[str]] = {"cifar10": ("airplane", "dog", "automobile")}


def run(recipe: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Explain the first correctly classified picture of three classes, the paper's where there are any."""
    started = time.monotonic()
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    classes = preferred(pair.test, SHOWN.get(recipe, ()))
    rows = first_right(predictions(pair.site, pair.test), pair.test, classes, 1)[:N_SHOWN]
    shown, arrays = explained(pair.site, pair.test, rows)
    config = pair.description() | {"recipe": recipe, "quick": quick}
    seconds = time.monotonic() - started
    result = Result(f"{recipe}_explanations", {"pictures": shown}, config, 0, seconds)
    return save_result(result, folder, arrays)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """Pictures as they are and moved, their explanations laid over them."""
    return sheet_of(result, arrays)


def section(result: Result, pictures: Pictures) -> str:
    """What the pictures shown were taken for, in both poses."""
    shown: list[Shown] = result.values["pictures"]
    rows = [
        [one["class"], one["predicted"], one["predicted when moved"], f"{one['self-consistency']:.3f}"]
        for one in shown
    ]
    return (
        head(result, "explanations in two poses (Figure 3)")
        + "The first correctly classified test picture of each of three classes, as it is and moved; the "
        "cosine is between the explanation of the moved picture and the moved explanation.\n\n"
        + markdown_table(["class", "seen as", "moved, seen as", "cosine"], rows)
        + pictures.sheet(result.name, "Three pictures as they are and moved, their explanations below")
    )
