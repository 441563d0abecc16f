"""Pictures and their explanations, as they are and moved: Figure 3, a sheet for every class, photographs.

Claim:    the explanation stands on the main parts of the thing, and on the same when the picture is moved;
          for every class as for three, and for pictures from elsewhere, shrunk to the model's size. (The cat
          is a cat; a rocket and a motorcycle are no classes of CIFAR-10: theirs are the nearest.)
Command:  torchsite reproduce cifar10_explanations, cifar10_examples, cifar10_photographs, mnist_explanations,
          mnist_examples
Cost:     one pass over the test set to find pictures that are classified correctly; seconds. Photographs need
          scikit-image.

The pose of picture i depends on the seed and i alone: it is the same in every figure. Heatmaps are drawn on
scales of their own, symmetric about zero: red speaks for the class, blue against it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int64
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from experiments.cache import save_result
from experiments.models import Pair, pair_beside
from experiments.registry import Arrays
from experiments.section import Pictures, head
from experiments.tables import Row
from torchsite.data import Dataset, batches, to_float
from torchsite.data.pictures import as_input, fitted
from torchsite.errors import ConfigError
from torchsite.metrics import Poses
from torchsite.metrics.carried import carry
from torchsite.model import SITE
from torchsite.model.drawing import COLOURS, new_figure, show_picture
from torchsite.report.format import markdown_table
from torchsite.results import Result
from torchsite.shapes import Labels, Logits, Pixels
from torchsite.transforms import Transform

Rows = Int64[Tensor, " pictures"]
Chosen = tuple[Dataset, Rows]

N_SHOWN, N_PER_CLASS = 3, 3
NAMED: Mapping[str, Sequence[str]] = {"cifar10": ("airplane", "dog", "automobile")}  # in the paper
# The photographs, and the class that each comes nearest to.
PHOTOGRAPHS = {"chelsea.png": "cat", "rocket.jpg": "airplane", "motorcycle_left.png": "automobile"}
# What the columns of a table show of each picture.
COLUMNS: Mapping[str, Callable[[Row], str]] = {
    "photograph": lambda one: one["photograph"],
    "class": lambda one: one["class"],
    "seen as": lambda one: one["predicted"],
    "probability": lambda one: f"{one['probability']:.3f}",
    "moved, seen as": lambda one: one["predicted when moved"],
    "cosine": lambda one: f"{one['self-consistency']:.3f}",
}


@dataclass(frozen=True)
class Sheet:
    """Which pictures are shown, what is said of them, and the columns of the table; none: a line a class."""

    title: str
    words: str
    choose: Callable[[Pair, str], Chosen]
    columns: tuple[str, ...] = ()
    about: str = ""
    config: Mapping[str, object] = field(default_factory=dict)


def three(pair: Pair, recipe: str) -> Chosen:
    """The first correctly classified picture of three classes, the paper's where there are any."""
    classes = preferred(pair.test, NAMED.get(recipe, ()))
    return pair.test, first_right(predictions(pair.site, pair.test), pair.test, classes, 1)[:N_SHOWN]


def of_every_class(pair: Pair, recipe: str) -> Chosen:
    """The first correctly classified pictures of every class; a class may have fewer than three."""
    classes = range(len(pair.test.classes))
    return pair.test, first_right(predictions(pair.site, pair.test), pair.test, classes, N_PER_CLASS)


def from_elsewhere(pair: Pair, recipe: str) -> Chosen:
    """The photographs."""
    return photographs(pair.site), torch.arange(len(PHOTOGRAPHS))


SHEETS: Mapping[str, Sheet] = {
    "explanations": Sheet(
        "explanations in two poses (Figure 3)",
        "The first correctly classified test picture of each of three classes, as it is and moved; the "
        "cosine is between the explanation of the moved picture and the moved explanation.",
        three,
        ("class", "seen as", "moved, seen as", "cosine"),
        "Three pictures as they are and moved, their explanations below",
    ),
    "examples": Sheet(
        "explanations of every class (appendix)",
        "The first correctly classified test pictures of each class, as they are and moved.",
        of_every_class,
        config={"n_per_class": N_PER_CLASS},
    ),
    "photographs": Sheet(
        "photographs from elsewhere",
        "Photographs that come with scikit-image, shrunk to the model's size; the rocket and the motorcycle "
        "belong to none of its classes.",
        from_elsewhere,
        ("photograph", "seen as", "probability", "moved, seen as", "cosine"),
        "Photographs as they are and moved, their explanations below",
        {"source": "scikit-image"},
    ),
}


def run(name: str, folder: Path, *, quick: bool = False, progress: bool = False) -> Result:
    """Explain the pictures of a sheet (`cifar10_examples`), each as it is and moved."""
    started, (recipe, _, kind) = time.monotonic(), name.partition("_")
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    shown, arrays = explained(pair.site, *SHEETS[kind].choose(pair, recipe))
    if kind == "photographs":
        shown = [one | {"photograph": file} for one, file in zip(shown, PHOTOGRAPHS, strict=True)]
    config = pair.description() | {"recipe": recipe, "quick": quick, **SHEETS[kind].config}
    result = Result(name, {"pictures": shown}, config, 0, time.monotonic() - started)
    return save_result(result, folder, arrays)


def figures(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """All pictures on one sheet, or one sheet for every class that has pictures; none without arrays."""
    if not arrays or _sheet(result).columns:
        return sheet_of(result, arrays)
    return {
        f"{result.name}-{label}": draw_two_poses(
            [one for _, one in shown],
            {name: array[[number for number, _ in shown]] for name, array in arrays.items()},
        )
        for label, shown in _by_class(result).items()
    }


def section(result: Result, pictures: Pictures) -> str:
    """What the pictures were taken for in both poses, and how far their explanations moved along."""
    sheet, shown = _sheet(result), result.values["pictures"]
    header, sheets = sheet.columns, pictures.sheet(result.name, sheet.about)
    rows = [[COLUMNS[column](one) for column in header] for one in shown if header]
    if not header:
        header, sheets = ("class", "still seen so when moved", "cosines"), ""
        for label, some in _by_class(result).items():
            kept = sum(one["predicted when moved"] == label for _, one in some)
            cosines = ", ".join(COLUMNS["cosine"](one) for _, one in some)
            rows.append([label, f"{kept} of {len(some)}", cosines])
            sheets += pictures.sheet(f"{result.name}-{label}", f"{label}, as it is and moved")
    return head(result, sheet.title) + f"{sheet.words}\n\n" + markdown_table(header, rows) + sheets


def _sheet(result: Result) -> Sheet:
    return SHEETS[result.name.partition("_")[2]]


def _by_class(result: Result) -> dict[str, list[tuple[int, Row]]]:
    """The pictures of each class, with their numbers."""
    found: dict[str, list[tuple[int, Row]]] = {}
    for number, one in enumerate(result.values["pictures"]):
        found.setdefault(one["class"], []).append((number, one))
    return found


def photographs(model: SITE) -> Dataset:
    """The middle square of each photograph in the model's size; a class that the model lacks is its first."""
    images = torch.cat([_square(name, model.config.image_shape) for name in PHOTOGRAPHS])
    labels = [model.classes.index(c) if c in model.classes else 0 for c in PHOTOGRAPHS.values()]
    return Dataset(images, torch.tensor(labels), model.classes, "photographs")


def open_photograph(name: str, folder: str = "skimage.data", package: str = "scikit-image") -> Image.Image:
    """A photograph that comes with scikit-image, or with another package, in colour."""
    try:
        place = Path(str(import_module(folder).__file__)).parent
    except ImportError as error:
        raise ConfigError(
            f"{name} comes with {package}, which is missing ({error}): pip install {package}"
        ) from error
    with Image.open(place / name) as file:
        return file.convert("RGB")


def _square(name: str, shape: tuple[int, int, int]) -> Pixels:
    picture = as_input(fitted(open_photograph(name), max(shape[1:])), shape)
    return (picture[None] * 255).round().to(torch.uint8)


def pose_of(model: SITE, rows: Rows) -> Transform:
    """The transform that each of these pictures is shown under."""
    return Poses(model.config.family, n=1).of(rows, 0)


def logits_of(model: SITE, data: Dataset, batch_size: int = 250) -> Logits:
    """The model's logits of every picture, as it is."""
    with torch.no_grad():
        return torch.cat([model.eval()(images) for images, _ in batches(data, batch_size)])


def predictions(model: SITE, data: Dataset, batch_size: int = 250) -> Labels:
    """What the model says to every picture, as it is."""
    return logits_of(model, data, batch_size).argmax(1)


def first_right(predicted: Labels, data: Dataset, classes: Sequence[int], n: int) -> Rows:
    """The first `n` pictures of each class that are classified correctly, class by class."""
    right = predicted == data.labels
    return torch.cat([(right & (data.labels == label)).nonzero().flatten()[:n] for label in classes])


def preferred(data: Dataset, names: Sequence[str]) -> list[int]:
    """The numbers of all classes, the named ones first."""
    first = [data.classes.index(name) for name in names if name in data.classes]
    return [*first, *(label for label in range(len(data.classes)) if label not in first)]


def explained(model: SITE, data: Dataset, rows: Rows) -> tuple[list[Row], dict[str, Tensor]]:
    """What there is to say of each picture, and its arrays.

    These are the picture, the map of its predicted class, I(x); both for the moved picture, I(T x); and the
    map that was moved, T(I(x)).
    """
    images, transform = to_float(data.images[rows]), pose_of(model, rows)
    moved = transform(images)
    before, after = model.explain(images), model.explain(moved)
    classes = before.predicted
    both = carry(before.heatmaps(classes=classes), after.heatmaps(classes=classes), transform)
    shown = [
        {
            "row": int(rows[i]),
            "class": data.classes[int(data.labels[rows[i]])],
            "predicted": data.classes[int(classes[i])],
            "predicted when moved": data.classes[int(after.predicted[i])],
            "probability": float(before.probabilities[i].max()),
            "self-consistency": float(both.raw[i]),
        }
        for i in range(len(rows))
    ]
    maps = {"maps": both.untouched, "moved_maps": both.renewed, "carried_maps": both.carried}
    return shown, {"images": images, "moved": moved} | maps


def sheet_of(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """All pictures of a result on one sheet; none without arrays."""
    return {result.name: draw_two_poses(result.values["pictures"], arrays)} if arrays else {}


def draw_two_poses(shown: Sequence[Row], arrays: Arrays) -> Figure:
    """Pictures above, explanations below; each picture beside its moved self."""
    figure, grid = new_figure(2, 2 * len(shown), 1.2)
    for i, one in enumerate(shown):
        as_is, moved = arrays["images"][i], arrays["moved"][i]
        show_picture(grid[0][2 * i], as_is, one["predicted"])
        show_picture(grid[0][2 * i + 1], moved, one["predicted when moved"])
        show_overlay(grid[1][2 * i], as_is, arrays["maps"][i])
        cosine = f"cosine {one['self-consistency']:.2f}"
        show_overlay(grid[1][2 * i + 1], moved, arrays["moved_maps"][i], cosine)
    return figure


def show_overlay(axes: Axes, image: Tensor, heatmap: Tensor, title: str = "") -> None:
    """A faint grey picture, and over it the map: the stronger the evidence, the less the picture is seen."""
    grey = 0.6 + 0.4 * np.asarray(image.float().mean(0).clamp(0, 1))
    values = np.asarray(heatmap.float())
    bound = float(np.abs(values).max()) or 1.0
    axes.imshow(grey, cmap="gray", vmin=0, vmax=1)
    strength = np.clip(np.abs(values) / bound, 0, 1) ** 0.7
    axes.imshow(values, cmap=COLOURS, vmin=-bound, vmax=bound, alpha=strength)
    axes.set_title(title, fontsize=7, pad=2)
