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

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int64
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from experiments.models import Pair
from experiments.study import Arrays, Found, Run, Study
from experiments.tables import Cell, Row, Table
from torchsite.data import Dataset, batches, to_float
from torchsite.data.pictures import as_input, fitted
from torchsite.errors import ConfigError
from torchsite.metrics import Poses
from torchsite.metrics.carried import carry
from torchsite.model import SITE
from torchsite.model.drawing import COLOURS, new_figure, show_picture
from torchsite.results import Result
from torchsite.shapes import Labels, Logits, Pixels
from torchsite.transforms import Transform

Rows = Int64[Tensor, " pictures"]
Chosen = tuple[Dataset, Rows]
Find = Callable[[Run], Found]

N_SHOWN, N_PER_CLASS = 3, 3
NAMED: Mapping[str, Sequence[str]] = {"cifar10": ("airplane", "dog", "automobile")}  # in the paper
# The photographs, and the class that each comes nearest to.
PHOTOGRAPHS = {"chelsea.png": "cat", "rocket.jpg": "airplane", "motorcycle_left.png": "automobile"}
# What a column shows of each picture.
COLUMNS: Mapping[str, Cell] = {
    "photograph": lambda one: one["photograph"],
    "class": lambda one: one["class"],
    "seen as": lambda one: one["predicted"],
    "probability": lambda one: f"{one['probability']:.3f}",
    "moved, seen as": lambda one: one["predicted when moved"],
    "cosine": lambda one: f"{one['self-consistency']:.3f}",
}


def three(pair: Pair, recipe: str) -> Chosen:
    """The first correctly classified picture of three classes, the paper's where there are any."""
    classes = preferred(pair.test, NAMED.get(recipe, ()))
    return pair.test, first_right(predictions(pair.site, pair.test), pair.test, classes, 1)[:N_SHOWN]


def of_every_class(pair: Pair, recipe: str) -> Chosen:
    """The first correctly classified pictures of every class; a class may have fewer than three."""
    classes = range(len(pair.test.classes))
    return pair.test, first_right(predictions(pair.site, pair.test), pair.test, classes, N_PER_CLASS)


def explaining(choose: Callable[[Pair, str], Chosen], **config: object) -> Find:
    """Explain the chosen pictures, each as it is and moved."""

    def find(run: Run) -> Found:
        shown, arrays = explained(run.pair.site, *choose(run.pair, run.recipe))
        return Found({"pictures": shown}, arrays, run.pair.description() | config)

    return find


def from_elsewhere(run: Run) -> Found:
    """Explain the photographs."""
    site = run.pair.site
    shown, arrays = explained(site, photographs(site), torch.arange(len(PHOTOGRAPHS)))
    named = [one | {"photograph": file} for one, file in zip(shown, PHOTOGRAPHS, strict=True)]
    return Found({"pictures": named}, arrays, run.pair.description() | {"source": "scikit-image"})


def on_one_sheet(name: str, title: str, words: str, columns: Sequence[str], find: Find, about: str) -> Study:
    """A study with a line for each picture, and all pictures on one sheet."""
    chosen = {column: COLUMNS[column] for column in columns}
    table = Table(chosen, lambda _: f"{words}\n\n", of=lambda result: result.values["pictures"], names={})
    sheets: Callable[[Result], dict[str, str]] = lambda result: {result.name: about}  # noqa: E731
    return Study(f"{{}}_{name}", f"## {{}}: {title}", [table], find=find, show=sheet_of, sheets=sheets)


def by_class(result: Result) -> list[Row]:
    """A line for each class: the pictures, their numbers, and how many are seen as before when moved."""
    lines: dict[str, Row] = {}
    for number, one in enumerate(result.values["pictures"]):
        line = lines.setdefault(one["class"], {"class": one["class"], "shown": [], "numbers": []})
        line["shown"].append(one)
        line["numbers"].append(number)
    return list(lines.values())


def draw_by_class(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """One sheet for every class that has pictures."""
    return {
        f"{result.name}-{line['class']}": draw_two_poses(
            line["shown"], {name: array[line["numbers"]] for name, array in arrays.items()}
        )
        for line in by_class(result)
    }


def still_seen(line: Row) -> str:
    """How many pictures of a class are seen as such when they are moved."""
    shown = [one["predicted when moved"] == line["class"] for one in line["shown"]]
    return f"{sum(shown)} of {len(shown)}"


def sheet_of(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """All pictures of a result on one sheet."""
    return {result.name: draw_two_poses(result.values["pictures"], arrays)}


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


THREE = on_one_sheet(
    "explanations",
    "explanations in two poses (Figure 3)",
    "The first correctly classified test picture of each of three classes, as it is and moved; the cosine is "
    "between the explanation of the moved picture and the moved explanation.",
    ("class", "seen as", "moved, seen as", "cosine"),
    explaining(three),
    "Three pictures as they are and moved, their explanations below",
)
PHOTOGRAPHED = on_one_sheet(
    "photographs",
    "photographs from elsewhere",
    "Photographs that come with scikit-image, shrunk to the model's size; the rocket and the motorcycle "
    "belong to none of its classes.",
    ("photograph", "seen as", "probability", "moved, seen as", "cosine"),
    from_elsewhere,
    "Photographs as they are and moved, their explanations below",
)
CLASS_COLUMNS: Mapping[str, Cell] = {
    "class": lambda line: line["class"],
    "still seen so when moved": still_seen,
    "cosines": lambda line: ", ".join(map(COLUMNS["cosine"], line["shown"])),
}
EVERY_CLASS_WORDS = "The first correctly classified test pictures of each class, as they are and moved.\n\n"
EVERY_CLASS = Study(
    "{}_examples",
    "## {}: explanations of every class (appendix)",
    [Table(CLASS_COLUMNS, lambda _: EVERY_CLASS_WORDS, of=by_class, names={})],
    find=explaining(of_every_class, n_per_class=N_PER_CLASS),
    show=draw_by_class,
    sheets=lambda result: {
        f"{result.name}-{line['class']}": f"{line['class']}, as it is and moved" for line in by_class(result)
    },
)
