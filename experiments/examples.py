"""Example sheets, class by class: three pictures each, as they are and moved (the paper's appendix).

Claim:    what Figure 3 shows for three pictures holds for every class.
Command:  torchsite reproduce cifar10_examples   (or mnist_examples)
Cost:     one pass over the test set to find pictures that are classified correctly; seconds.
"""

import time
from pathlib import Path

from matplotlib.figure import Figure

from experiments.cache import save_result
from experiments.models import pair_beside
from experiments.registry import Arrays
from experiments.section import Pictures, head
from experiments.shown import Shown, draw_two_poses, explained, first_right, predictions
from torchsite.report.format import markdown_table
from torchsite.results import Result

N_PER_CLASS = 3


def run(recipe: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Explain the first correctly classified pictures of every class; a class may have fewer than three."""
    started = time.monotonic()
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    classes = range(len(pair.test.classes))
    rows = first_right(predictions(pair.site, pair.test), pair.test, classes, N_PER_CLASS)
    shown, arrays = explained(pair.site, pair.test, rows)
    config = pair.description() | {"recipe": recipe, "quick": quick, "n_per_class": N_PER_CLASS}
    result = Result(f"{recipe}_examples", {"pictures": shown}, config, 0, time.monotonic() - started)
    return save_result(result, folder, arrays)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """One sheet for every class that has pictures."""
    sheets = {}
    for label, shown in _by_class(result).items() if arrays else ():
        rows = [number for number, _ in shown]
        part = {name: array[rows] for name, array in arrays.items()}
        sheets[f"{result.name}-{label}"] = draw_two_poses([one for _, one in shown], part)
    return sheets


def section(result: Result, pictures: Pictures) -> str:
    """How the explanations of each class follow their pictures, a sheet for each."""
    rows, sheets = [], []
    for label, shown in _by_class(result).items():
        kept = sum(one["predicted when moved"] == label for _, one in shown)
        cosines = ", ".join(f"{one['self-consistency']:.3f}" for _, one in shown)
        rows.append([label, f"{kept} of {len(shown)}", cosines])
        sheets.append(pictures.sheet(f"{result.name}-{label}", f"{label}, as it is and moved"))
    return (
        head(result, "explanations of every class (appendix)")
        + "The first correctly classified test pictures of each class, as they are and moved.\n\n"
        + markdown_table(["class", "still seen so when moved", "cosines"], rows)
        + "".join(sheets)
    )


def _by_class(result: Result) -> dict[str, list[tuple[int, Shown]]]:
    """The pictures of each class, with their numbers."""
    found: dict[str, list[tuple[int, Shown]]] = {}
    for number, one in enumerate(result.values["pictures"]):
        found.setdefault(one["class"], []).append((number, one))
    return found
