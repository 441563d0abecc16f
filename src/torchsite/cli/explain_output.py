"""What `torchsite explain` prints and writes of one picture: a sentence, numbers, a sheet."""

import io
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from torchsite.cli.inputs import Task
from torchsite.files import write_atomically
from torchsite.model import Explanation
from torchsite.model.drawing import draw_explanation, draw_why, png
from torchsite.model.tiles import TiledExplanation


@dataclass(frozen=True, eq=False)
class Answer:
    """One picture of an explanation, and the classes to explain.

    These are the prediction, a given class (`chosen`), or one class rather than another (`why`).
    """

    task: Task
    explanation: Explanation | TiledExplanation
    index: int
    chosen: str | None = None
    why: tuple[str, str] | None = None

    @cached_property
    def classes(self) -> tuple[int, int]:
        """The explained class and the one to contrast it with: its strongest rival unless given."""
        names = self.explanation.classes
        if self.why is not None:
            return names.index(self.why[0]), names.index(self.why[1])
        order: list[int] = self.explanation.logits[self.index].argsort(descending=True).tolist()
        first = order[0] if self.chosen is None else names.index(self.chosen)
        return first, next(label for label in order if label != first)

    @cached_property
    def heatmap(self) -> Tensor:
        """The evidence for the explained class."""
        labels = torch.full((len(self.explanation.logits),), self.classes[0])
        return self.explanation.heatmaps(classes=labels)[self.index]

    @property
    def prediction(self) -> str:
        """The class that is predicted; all that are more likely than not, where several may be."""
        names, logits = self.explanation.classes, self.explanation.logits[self.index]
        if not self.explanation.multi_label:
            return names[int(self.explanation.predicted[self.index])]
        present = (logits > 0).tolist()
        return ", ".join(name for name, yes in zip(names, present, strict=True) if yes) or "none"

    def summary(self) -> dict[str, Any]:
        """The prediction, the runner-up, and the evidence between the two explained classes."""
        explanation, index, (first, second) = self.explanation, self.index, self.classes
        names, probabilities = explanation.classes, explanation.probabilities[index]
        best, next_best = int(explanation.predicted[index]), int(explanation.runner_up()[index])
        alone = explanation.multi_label and self.why is None  # labels do not rule each other out
        evidence = (self.heatmap if alone else explanation.contrast(first, second)[index]).double()
        speaks_for, against = float(evidence.clamp_min(0).sum()), float(-evidence.clamp_max(0).sum())
        return {
            "prediction": self.prediction,
            "probability": round(float(probabilities[best]), 4),
            "runner_up": names[next_best],
            "runner_up_probability": round(float(probabilities[next_best]), 4),
            "class": names[first],
            "class_probability": round(float(probabilities[first]), 4),
            "rather_than": "nothing" if alone else names[second],
            "evidence_for": round(speaks_for, 4),
            "evidence_against": round(against, 4),
            "share_of_evidence": round(speaks_for / max(speaks_for + against, 1e-9), 4),
        }

    def write(self, format: str) -> Path:
        """Write a picture (png), text (json) or arrays (npz).

        Numbers are the logits of all classes, heatmaps and prototypes of the given classes, or of all, and
        `why` if it was given.
        """
        explanation, index, path = self.explanation, self.index, self.task.target
        assert isinstance(explanation, Explanation)
        if format == "png":
            return write_atomically(path, png(self._sheet(explanation)))
        names = list(self.why or ((self.chosen,) if self.chosen is not None else explanation.classes))
        rows = [explanation.classes.index(name) for name in names]
        arrays: dict[str, np.ndarray] = {
            "logits": explanation.logits[index].numpy(),
            "heatmaps": explanation.heatmaps()[index, rows].numpy(),
            "prototypes": explanation.prototypes[index, rows].numpy(),
        }
        if self.why is not None:
            arrays["why"] = explanation.contrast(*self.why)[index].numpy()
        text = {"classes": list(explanation.classes), "shown": names}
        if format == "json":
            numbers = {name: array.tolist() for name, array in arrays.items()}
            return write_atomically(path, json.dumps(text | numbers))
        buffer = io.BytesIO()
        words = {name: np.asarray(values) for name, values in text.items()}
        np.savez_compressed(buffer, allow_pickle=False, **words, **arrays)
        return write_atomically(path, buffer.getvalue())

    def _sheet(self, explanation: Explanation) -> Figure:
        if self.why is not None:
            return draw_why(explanation, *self.why, index=self.index)
        return draw_explanation(explanation, self.index, first=self.chosen)


def sentence(line: dict[str, Any]) -> str:
    """The summary for people, with what the deletion check found if there was one."""
    checked = ""
    if "deletion_check" in line:
        checked = f"; deletion check {line['deletion_check']:.2f}"
        checked += ", below the threshold: abstain" if line.get("abstain") else ""
    return (
        f"{line['picture']}: {line['prediction']} ({line['probability']:.1%}), "
        f"then {line['runner_up']} ({line['runner_up_probability']:.1%}); "
        f"{line['share_of_evidence']:.0%} of the evidence between {line['class']} and {line['rather_than']} "
        f"speaks for {line['class']}{checked} → {line['written']}"
    )
