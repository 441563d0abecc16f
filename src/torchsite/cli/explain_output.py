"""What `torchsite explain` prints and writes of one picture: a sentence, numbers, a sheet."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from torchsite.files import write_atomically
from torchsite.model import Explanation
from torchsite.model.drawing import draw_explanation, draw_why, png
from torchsite.model.tiles import TiledExplanation


@dataclass(frozen=True)
class AskedClasses:
    """What is asked: why the prediction, why this class (`chosen`), or why one class and not another."""

    chosen: str | None = None
    why: tuple[str, str] | None = None

    def classes(self, explanation: Explanation | TiledExplanation, index: int) -> tuple[int, int]:
        """The class in question and the one that it is held against: its strongest rival unless named."""
        if self.why is not None:
            first, second = (explanation.classes.index(name) for name in self.why)
            return first, second
        order: list[int] = explanation.logits[index].argsort(descending=True).tolist()
        first = order[0] if self.chosen is None else explanation.classes.index(self.chosen)
        return first, next(label for label in order if label != first)

    def shown(self, explanation: Explanation) -> list[int]:
        """The classes whose numbers are written: those asked about, or all."""
        named = self.why or ((self.chosen,) if self.chosen is not None else explanation.classes)
        return [explanation.classes.index(name) for name in named]


def summary(
    explanation: Explanation | TiledExplanation, index: int, question: AskedClasses
) -> dict[str, Any]:
    """The prediction, the runner-up, and the evidence between the two classes in question."""
    names, probabilities = explanation.classes, explanation.probabilities[index]
    best, next_best = int(explanation.predicted[index]), int(explanation.runner_up()[index])
    first, second = question.classes(explanation, index)
    several = explanation.multi_label and question.why is None
    if several:
        contrast = explanation.heatmaps(classes=torch.full((len(explanation.logits),), first))[index].double()
    else:
        contrast = explanation.contrast(first, second)[index].double()
    speaks_for, against = float(contrast.clamp_min(0).sum()), float(-contrast.clamp_max(0).sum())
    return {
        "prediction": said(explanation, index),
        "probability": round(float(probabilities[best]), 4),
        "runner_up": names[next_best],
        "runner_up_probability": round(float(probabilities[next_best]), 4),
        "class": names[first],
        "class_probability": round(float(probabilities[first]), 4),
        "rather_than": "nothing" if several else names[second],
        "evidence_for": round(speaks_for, 4),
        "evidence_against": round(against, 4),
        "share_of_evidence": round(speaks_for / max(speaks_for + against, 1e-9), 4),
    }


def said(explanation: Explanation | TiledExplanation, index: int) -> str:
    """The class that is predicted; all that are more likely than not, where several may be."""
    if not explanation.multi_label:
        return explanation.classes[int(explanation.predicted[index])]
    present = (explanation.logits[index] > 0).tolist()
    return ", ".join(name for name, yes in zip(explanation.classes, present, strict=True) if yes) or "none"


def sentence(line: dict[str, Any]) -> str:
    """The summary for people."""
    return (
        f"{line['picture']}: {line['prediction']} ({line['probability']:.1%}), "
        f"then {line['runner_up']} ({line['runner_up_probability']:.1%}); "
        f"{line['share_of_evidence']:.0%} of the evidence between {line['class']} and {line['rather_than']} "
        f"speaks for {line['class']}{_checked(line)} → {line['written']}"
    )


def _checked(line: dict[str, Any]) -> str:
    """What the deletion check says, if there was one."""
    if "deletion_check" not in line:
        return ""
    flag = ", below the threshold: abstain" if line.get("abstain") else ""
    return f"; deletion check {line['deletion_check']:.2f}{flag}"


def draw(explanation: Explanation, index: int, question: AskedClasses) -> Figure:
    """The sheet that answers the question."""
    if question.why is not None:
        return draw_why(explanation, *question.why, index=index)
    return draw_explanation(explanation, index, first=question.chosen)


def write(explanation: Explanation, index: int, question: AskedClasses, path: Path, format: str) -> Path:
    """The answer as a picture (png), as text (json) or as arrays (npz).

    Numbers are the logits of all classes, and heatmaps and prototypes of the classes `shown`; `why` is there
    if it was asked for.
    """
    if format == "png":
        return write_atomically(path, png(draw(explanation, index, question)))
    shown = question.shown(explanation)
    arrays: dict[str, np.ndarray] = {
        "logits": explanation.logits[index].numpy(),
        "heatmaps": explanation.heatmaps()[index, shown].numpy(),
        "prototypes": explanation.prototypes[index, shown].numpy(),
    }
    if question.why is not None:
        arrays["why"] = explanation.contrast(*question.why)[index].numpy()
    names = {"classes": list(explanation.classes), "shown": [explanation.classes[label] for label in shown]}
    if format == "json":
        values = {name: array.tolist() for name, array in arrays.items()}
        return write_atomically(path, json.dumps(names | values))
    buffer = io.BytesIO()
    text = {name: np.asarray(words) for name, words in names.items()}
    np.savez_compressed(buffer, allow_pickle=False, **text, **arrays)
    return write_atomically(path, buffer.getvalue())
