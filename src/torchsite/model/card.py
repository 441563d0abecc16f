"""The card of a model: README.md beside its weights, which the hub shows and people read first.

`save_pretrained` writes one from the configuration if there is none; `fit` adds the figures of its last
validation. The data, its licence and the purpose of the model are left to fill in.
"""

from collections.abc import Mapping
from pathlib import Path

from torchsite.files import write_atomically
from torchsite.model.config import ModelConfig

CARD_FILE = "README.md"
MOST_CLASSES = 30

HEAD = """---
library_name: torchsite
pipeline_tag: image-classification
tags:
  - explainability
  - interpretability
  - equivariance
---
"""
CAUTION = """## Before you use it

Write here what it was made for, whose pictures it has learnt from, and under which licence they are.

It calls every picture one of its classes, also those that show none of them. A heatmap shows what the model
used; it does not show that this was right to use. It was not tested for decisions about people.
"""


def model_card(config: ModelConfig, measures: Mapping[str, float] | None = None, data: str = "") -> str:
    """The text of a card: what the model is, how to load it, and what a validation found, if any."""
    family, shape = config.family, " × ".join(map(str, config.image_shape))
    rows = {
        "kind": config.TITLE,
        "pictures": f"{shape}, values in [0, 1]",
        "classes": _class_list(config.classes),
        "feature extractor": config.feature_extractor,
        "poses": f"turned by up to ±{family.max_rotation:g}°, shifted by up to ±{100 * family.max_shift:g} %",
        "learnt from": data or "not recorded",
        "torchsite": config.version,
    }
    parts = [HEAD, f"# {config.TITLE}, {len(config.classes)} classes\n", _table(rows), _usage(config)]
    if measures:
        found = {name: f"{value:.4f}" for name, value in measures.items()}
        parts.append(f"## Measured\n\n{NOTE}\n\n{_table(found)}")
    return "\n".join([*parts, CAUTION])


def write_card(folder: Path, text: str) -> Path:
    """Put a card beside the weights, in the place of an older one."""
    return write_atomically(folder / CARD_FILE, text)


NOTE = """By the last validation of its training, on pictures that it has not learnt from. `floor` is the
consistency of maps of different pictures, the null of `raw`; `calibrated` is the share of the way from there
to 1. `torchsite report` measures more, with intervals."""


def _usage(config: ModelConfig) -> str:
    explains = config.kind == "site"
    lines = [
        "import torchsite as ts\n",
        f'model = ts.{"SITE" if explains else "BlackBox"}.from_pretrained("this folder")',
        "explanation = model.explain(images)" if explains else "logits = model(images)",
    ]
    return "\n".join(["```python", *lines, "```\n"])


def _class_list(classes: tuple[str, ...]) -> str:
    shown = ", ".join(classes[:MOST_CLASSES])
    return shown if len(classes) <= MOST_CLASSES else f"{shown} and {len(classes) - MOST_CLASSES} more"


def _table(rows: Mapping[str, str]) -> str:
    lines = [f"| {name} | {value} |".replace("\n", " ") for name, value in rows.items()]
    return "\n".join(["| | |", "|---|---|", *lines]) + "\n"
