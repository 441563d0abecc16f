"""The experiments on other families of transforms and on Food-101 as sections of the results page."""

from collections.abc import Mapping
from typing import Any

from torchsite.paper.published import HEADLINES, figure
from torchsite.paper.text import markdown_table, source
from torchsite.results import Result

SCORES = ("raw", "floor", "calibrated", "centred")
ORDER = {"without": "without", "with": "with", "with, paper's poses": "with, under turns and shifts alone"}


def families_section(result: Result) -> str:
    """Self-consistency and accuracy under each family, trained without and with it."""
    rows = [
        _row(kind, how, found[how])
        for kind, found in result.values["table"].items()
        for how in ORDER
        if how in found
    ]
    ranges = "\n".join(f"- {kind}: {text}" for kind, text in result.config["families"].items())
    minutes = sum(result.values["training"].values()) / 60
    return (
        "## Beyond turns and shifts, MNIST\n\n"
        f"{source(result)}\n\n"
        f"Each family adds one thing to the paper's poses; all are measured on {result.config['n_test']:,} "
        f"test pictures, two transforms each, with a model trained without the addition and with it "
        f"({result.config['n_train']:,} pictures, {result.config['settings']['epochs']} epochs; "
        f"{minutes:.0f} minutes of training in all).\n\n{ranges}\n\n"
        + markdown_table(
            ["measured under", "trained", "accuracy", *(f"consistency, {s}" for s in SCORES)], rows
        )
    )


def food_section(result: Result) -> str:
    """Accuracy and self-consistency of SITE and the black box, from nothing and from ImageNet."""
    models: Mapping[str, Any] = result.values["models"]
    names = [name for name in HEADLINES if not name.startswith(("pointing", "prototypes"))]
    rows = [[name, *(figure(found, *HEADLINES[name]) or "–" for found in models.values())] for name in names]
    rows.append(["parameters", *(f"{found['parameters']:,}" for found in models.values())])
    rows.append(
        ["training, minutes", *(f"{found['training seconds'] / 60:.1f}" for found in models.values())]
    )
    config, paper = result.config, result.values["paper"]
    return (
        f"## Food-101: {len(config['classes'])} classes at {config['size']} × {config['size']} pixels\n\n"
        f"{source(result)}\n\n"
        f"{config['n_train']:,} pictures to train on, {config['n_test']:,} to test with. From nothing with "
        "ResNet-18, the paper's extractor; from ImageNet with EfficientNet-Lite0 (`torchsite[pretrained]`). "
        f"The paper's figures, {paper['site']:.4f} for SITE and {paper['black_box']:.4f} for the black box, "
        "are of all 101 classes and 75,750 pictures. A sheet of explanations is in the folder of the run.\n\n"
        + markdown_table(["", *(name.replace("_", " ").replace("site", "SITE") for name in models)], rows)
    )


def _row(kind: str, how: str, found: Mapping[str, Any]) -> list[str]:
    accuracy = figure(found, "accuracy", "transformed") or "–"
    return [kind, ORDER[how], accuracy, *(figure(found, "self_consistency", name) or "–" for name in SCORES)]


def many_classes_section(result: Result) -> str:
    """What ninety-one classes more cost."""
    paper = result.config["paper"]
    rows = [
        [
            f"{n_classes} classes",
            *(f"{found[part] / 1e6:.2f} M" for part in ("extractor", "generator")),
            f"{1000 * found['seconds a picture']:.0f} ms",
            f"{1000 * found['processor seconds a picture']:.0f} ms",
            "unknown" if found["peak bytes"] is None else f"{found['peak bytes'] / 1e9:.2f} GB",
        ]
        for n_classes, found in result.values.items()
    ]
    rows.append(["paper, 101 classes", *(f"{paper[part] / 1e6:.1f} M" for part in paper), "–", "–", "–"])
    header = ["", "extractor", "generator", "training, a picture", "processor time", "peak of memory"]
    return (
        "## Scale in classes: the Food-101 recipe on painted pictures\n\n"
        f"{source(result)}\n\n"
        f"{result.config['n_steps']} training steps of {result.config['batch_size']} pictures of "
        f"{result.config['size']} pixels, each in two views.\n\n" + markdown_table(header, rows)
    )
