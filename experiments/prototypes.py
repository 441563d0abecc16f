"""Prototypes that strangers can read (the paper's Figure 2), MNIST and Fashion-MNIST.

Claim:    all ten prototypes of a picture, upright and posed, are taken for their classes by two networks that
          took no part in training; the picture resembles most the prototype of the class it is given to; and
          prototypes follow the picture.
Command:  torchsite reproduce prototypes
Cost:     two judges for each data set, some minutes, kept in the folder; then a pass over the test pictures.

The models are those of the folders beside, else the shipped ones. Older files have measured the first stage
of a training as well: before prototypes had to be readable.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from experiments.judges import JUDGES, make_judge
from experiments.models import N_QUICK
from experiments.section import Pictures
from experiments.shown import pose_of
from experiments.study import Arrays, Found, Run, Study
from experiments.tables import CONSISTENCY
from torchsite.data import Dataset, load_dataset, to_float
from torchsite.evaluation.cached import cached
from torchsite.evaluation.feed import feed
from torchsite.metrics import Accuracy, Measure, Poses, PrototypeLikeness, PrototypeRecognition, plain
from torchsite.model import SITE
from torchsite.model.drawing import new_figure, show_picture
from torchsite.report.format import NOTHING, markdown_table, number, score
from torchsite.results import Result

RECIPES: Mapping[str, str] = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}
MODELS = ("now", "before")

# What was aimed at: shares that both judges name, and the accuracies of the models before.
AIMS = ("untransformed", "transformed", "accuracy, upright", "accuracy, posed")
TARGETS: Mapping[str, Mapping[str, float]] = {
    "mnist": dict(zip(AIMS, (0.95, 0.90, 0.9959, 0.9858), strict=True)),
    "fashion_mnist": dict(zip(AIMS, (0.80, 0.70, 0.9374, 0.8733), strict=True)),
}
VIEWS: Mapping[str, str] = {"untransformed": "upright", "transformed": "posed"}
JUDGE_EPOCHS = 3.0
N_SHOWN = 5
BATCH = 250
OTHERS: Mapping[str, tuple[str, ...]] = {
    "accuracy, upright": ("accuracy", "untransformed"),
    "accuracy, posed": ("accuracy", "transformed"),
    "nearest prototype is the predicted class', upright": ("likeness", "nearest"),
    "nearest prototype is the predicted class', posed": ("likeness", "nearest_transformed"),
    **{f"consistency of prototypes, {name}": ("likeness", "consistency", name) for name in CONSISTENCY},
}


def find(run: Run) -> Found:
    """Train the judges, or take them from the folder, and let them name the prototypes of both models."""
    values: dict[str, Any] = {}
    arrays: dict[str, Tensor] = {}
    recipes: dict[str, Any] = {}
    for recipe in RECIPES:
        pair = replace(run, recipe=recipe).pair
        test = pair.test[: 60 if run.quick else None]
        values[recipe] = named(recipe, pair.site, test, run)
        arrays |= {f"{recipe}_{name}": array for name, array in drawn(pair.site, test).items()}
        recipes[recipe] = pair.description() | {"n_images": len(test)}
    weights = {recipe: found["weights"] for recipe, found in recipes.items()}
    return Found(values, arrays, {"judge_epochs": JUDGE_EPOCHS, "recipes": recipes, "weights": weights})


def named(recipe: str, model: SITE, test: Dataset, run: Run) -> dict[str, Any]:
    """How well the judges know pictures, and what they say of the prototypes of a model."""
    train = load_dataset("mnist_sample" if run.quick else recipe, "train")
    train, family = train[: N_QUICK["train"] if run.quick else None], model.config.family
    values: dict[str, Any] = {"classes": list(test.classes), "judges": {}}
    judges = {}
    for name in JUDGES:
        path = run.folder / f"{recipe}-{name}.safetensors"
        judges[name] = make_judge(name, train, family, path, JUDGE_EPOCHS)
        known = Accuracy(lambda images, _: images[:, 0], judges[name], poses=Poses(family, n=1))
        values["judges"] |= fed({name: known}, test)
    return values | {"now": measured(model, test, judges)}


def measured(model: SITE, test: Dataset, judges: Mapping[str, nn.Module]) -> dict[str, Any]:
    """What the judges say of the prototypes, and how prototypes resemble and follow the pictures."""
    shared = cached(model.eval())
    options: dict[str, Any] = {"n_classes": model.config.n_classes, "poses": Poses(model.config.family, n=1)}
    measures: dict[str, Measure] = {
        **{name: PrototypeRecognition(shared, shared, judge=one, **options) for name, one in judges.items()},
        "likeness": PrototypeLikeness(shared, shared, **options),
        "accuracy": Accuracy(shared, shared, **options),
    }
    return fed(measures, test, shared.forget)


def fed(
    measures: Mapping[str, Measure], test: Dataset, forget: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """What the measures find on the test pictures; after each batch the model may forget."""
    feed([*measures.values()], test, BATCH, told=lambda _: forget())
    return {name: plain(measure.result()) for name, measure in measures.items()}


def drawn(model: SITE, test: Dataset) -> dict[str, Tensor]:
    """The first picture of each of some classes, upright and posed, with the prototypes of all classes."""
    first = [int((test.labels == label).nonzero()[0]) for label in range(len(test.classes))]
    rows = torch.tensor(first[:: max(1, len(first) // N_SHOWN)][:N_SHOWN])
    images = to_float(test.images[rows])
    pictures = torch.stack([images, pose_of(model, rows)(images)], dim=1).flatten(0, 1)
    found = model.explain(pictures)
    return {"pictures": pictures, "prototypes": found.prototypes, "predicted": found.predicted}


def draw_sheets(result: Result, arrays: Arrays) -> dict[str, Figure]:
    """Figure 2 of the paper for each data set: pictures, upright and posed, and all their prototypes."""
    return {f"{result.name}-{recipe}": _sheet(result, arrays, recipe) for recipe in RECIPES}


def _sheet(result: Result, arrays: Arrays, recipe: str) -> Figure:
    classes: list[str] = result.values[recipe]["classes"]
    pictures, prototypes = (arrays[f"{recipe}_{name}"] for name in ("pictures", "prototypes"))
    figure, grid = new_figure(len(pictures), 1 + len(classes), 0.8)
    for i, (first, *others) in enumerate(grid):
        show_picture(first, pictures[i], f"seen as {classes[int(arrays[f'{recipe}_predicted'][i])]}")
        for name, axes, prototype in zip(classes, others, prototypes[i], strict=True):
            show_picture(axes, prototype, name)
    return figure


def text(result: Result, pictures: Pictures) -> str:
    """The judges' answers beside what was aimed at, what they say of real pictures, and what was before."""
    parts = []
    for recipe, title in RECIPES.items():
        values, aims = result.values[recipe], TARGETS[recipe]
        models = {which: values[which] for which in MODELS if which in values}
        rows = []
        for view, judge in product(VIEWS, values["judges"]):
            scores = (score(model, judge, view) for model in models.values())
            aim, known = number(aims[view], 2), score(values["judges"], judge, view)
            rows.append([f"named by the {judge} judge, {VIEWS[view]}", *scores, aim, known])
        for name, path in OTHERS.items():
            scores = (score(model, *path) for model in models.values())
            rows.append([name, *scores, number(aims.get(name)), NOTHING])
        floor, n = values["now"]["likeness"]["nearest_floor"], result.config["recipes"][recipe]["n_images"]
        parts.append(
            f"### {title}\n\nAll prototypes of {n:,} test pictures.\n\n"
            + markdown_table(["", *models, "aimed at", "the judge on real pictures"], rows)
            + f"\nChance names 0.1 of the prototypes; the commonest answer is nearest for {floor:.2f}.\n"
            + pictures.sheet(
                f"{result.name}-{recipe}", f"{title}: pictures and the prototypes of all classes"
            )
        )
    return "\n".join(parts)


STUDY = Study(
    "prototypes",
    "## Prototypes that strangers can read",
    find=find,
    text=text,
    show=draw_sheets,
)
