"""The cards of the models that come with the package: README.md beside each folder of weights.

A card is docs/templates/card.md.j2, filled with the model's configuration, its recipe and what result files
say of it. A result that names other weights than those in the folder is left out: a card never tells of a
model that it does not lie beside.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.claims import OWN, RIVAL, method_row
from experiments.provenance import is_of
from experiments.recipes import known_recipes, stages_of
from torchsite.errors import ConfigError
from torchsite.evaluation.fingerprints import weights_of
from torchsite.model import load
from torchsite.report.format import HEADLINES, estimate, look_up, markdown_table
from torchsite.results import Result

BLACK_BOX = "_black_box"


@dataclass(frozen=True)
class Origin:
    """The pictures that a model has learnt from, and who may do what with them."""

    title: str
    hub_name: str
    pictures: str
    licence: str
    warning: str
    recipe: str = ""  # if it is not called as the model
    black_box_recipe: str = ""  # if that is another


ORIGINS: Mapping[str, Origin] = {
    "mnist": Origin(
        "MNIST",
        "ylecun/mnist",
        "60,000 digits of 28×28 pixels, 10,000 more to test with (Y. LeCun, C. Cortes, C. Burges)",
        "Creative Commons Attribution-Share Alike 3.0, as its copies state it",
        "It knows centred digits, white on black. It calls anything else a digit as well.",
        black_box_recipe="mnist_first",
    ),
    "fashion_mnist": Origin(
        "Fashion-MNIST",
        "zalando-datasets/fashion_mnist",
        "60,000 pictures of clothes of 28×28 pixels, 10,000 more to test with (Zalando Research)",
        "MIT",
        "It knows centred clothes from one shop's catalogue. It calls anything else clothes as well.",
        black_box_recipe="fashion_mnist_first",
    ),
    "cifar10": Origin(
        "CIFAR-10",
        "uoft-cs/cifar10",
        "50,000 photographs of 32×32 pixels, 10,000 more to test with (A. Krizhevsky, V. Nair, G. Hinton)",
        "none is stated: the authors ask to be cited, and the photographs were gathered from the web",
        "It knows ten kinds of things in thumbnails. People are none of them: it must not be used on people.",
        black_box_recipe="cifar10_additive",
    ),
    "eurosat": Origin(
        "EuroSAT",
        "blanchon/EuroSAT_RGB",
        "10,000 of EuroSAT's satellite pictures of 64×64 pixels, ten metres a pixel, 3,000 more to test with "
        "(Helber et al. 2019; there is no official split), from the ImageNet weights of EfficientNet-Lite0 "
        "(Apache-2.0)",
        "MIT",
        "It knows ten kinds of European land from above, at ten metres a pixel. It calls anything else land.",
    ),
    "bam_objects": Origin(
        "objects on scenes (BAM)",
        "timm/oxford-iiit-pet",
        "6,000 pictures of 96×96 pixels, 1,000 more to test with: cut-outs of ten fruits (Fruits-360) and "
        "ten breeds of cats and dogs (Oxford-IIIT Pet) pasted on ten kinds of scenes (MiniPlaces), from the "
        "ImageNet weights of EfficientNet-Lite0 (Apache-2.0)",
        "Fruits-360: MIT; Oxford-IIIT Pet: Creative Commons Attribution-Share Alike 4.0; MiniPlaces: made "
        "for research, no licence comes with its copy. No picture is contained in the weights",
        "It knows twenty things, each pasted somewhere on a scene. It calls whatever it sees by their names.",
        recipe="bam",
    ),
}


def card_context(folder: Path, results: Mapping[str, Result]) -> dict[str, Any]:
    """What the template of a card is filled with."""
    name, model = folder.name, load(folder)
    recipe, kind = name.removesuffix(BLACK_BOX), "black_box" if name.endswith(BLACK_BOX) else "site"
    if recipe not in ORIGINS:
        raise ConfigError(f"{folder}: no card without an origin: add {recipe!r} to ORIGINS in paper/cards.py")
    weights = weights_of(model)
    theirs = {key: result for key, result in results.items() if is_of(result, [weights])}
    accuracy = theirs.get(f"accuracy_{recipe}")
    by = ORIGINS[recipe].recipe or recipe
    by = by if kind == "site" else ORIGINS[recipe].black_box_recipe or by
    return {
        "name": name,
        "recipe": recipe,
        "kind": kind,
        "config": model.config,
        "origin": ORIGINS[recipe],
        "stages": stages_of(by),
        "settings": "\n---\n".join(
            known_recipes()[stage].read_text(encoding="utf-8").strip() for stage in stages_of(by)
        ),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "megabytes": (folder / "model.safetensors").stat().st_size / 1e6,
        "accuracy": accuracy,
        "table": figures(theirs, recipe, kind),
        "sources": [key for key in names(recipe) if key in theirs],
    }


def names(recipe: str) -> list[str]:
    """The results that a card draws from."""
    return [f"accuracy_{recipe}", *(f"{recipe}_{what}" for what in ("consistency", "pointing", "truth"))]


def figures(results: Mapping[str, Result], recipe: str, kind: str) -> str:
    """Scores with their intervals, each null beside its score: accuracy, consistency, patch deletion."""
    rows: list[list[str]] = []
    accuracy = results.get(f"accuracy_{recipe}")
    if accuracy is not None:
        chance = f"{1 / len(accuracy.config[kind]['model']['classes']):.2g}"
        for title in ("accuracy, untransformed", "accuracy, transformed"):
            rows.append([title, estimate(look_up(accuracy.values[kind], *HEADLINES[title])), chance])
        found = look_up(accuracy.values[kind], "prediction_equivariance")
        rows.append(["prediction survives the transform", *_beside(found, "share", "floor")])
    whose = "" if kind == "site" else "Grad-CAM: "
    consistency = _consistency(results, recipe, kind)
    if consistency is not None:
        rows.append([f"{whose}self-consistency, raw", *_beside(consistency, "raw", "floor")])
        rows.append([f"{whose}self-consistency, calibrated", estimate(consistency["calibrated"]), "0"])
    patches = _truth(results, recipe, kind, "patch_deletion")
    rows.append(
        [f"{whose}patch deletion", *(_beside(patches, "correlation", "floor") if patches else NOT_YET)]
    )
    filled = look_up(_truth(results, recipe, kind, "frame_control"), "filled", "calibrated")
    if filled:
        rows.append([f"{whose}self-consistency, corners filled", estimate(filled), "0"])
    return markdown_table(["", "value and 95 % interval", "null"], rows)


NOT_YET = ["not measured on these weights", ""]


def _consistency(results: Mapping[str, Result], recipe: str, kind: str) -> Mapping[str, Any] | None:
    """SITE's own from the table of accuracy, on all test pictures; Grad-CAM's from the table of methods."""
    if kind == "site" and f"accuracy_{recipe}" in results:
        found: Mapping[str, Any] | None = look_up(
            results[f"accuracy_{recipe}"].values["site"], "self_consistency"
        )
        return found
    tables = [results[key] for key in names(recipe)[1:3] if key in results]
    return method_row(tables[0], *RIVAL).get("self_consistency") if tables else None


def _truth(results: Mapping[str, Result], recipe: str, kind: str, metric: str) -> Any:
    """From the table of methods, else from the model's own evaluation, where that probed."""
    if f"{recipe}_truth" not in results:
        accuracy = results.get(f"accuracy_{recipe}")
        return None if accuracy is None or kind != "site" else look_up(accuracy.values["site"], metric)
    who = OWN if kind == "site" else RIVAL
    return method_row(results[f"{recipe}_truth"], *who, metric).get("values")


def _beside(found: Any, score: str, null: str) -> list[str]:
    return [estimate(look_up(found, score)), estimate(look_up(found, null))]
