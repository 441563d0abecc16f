"""Distillation: the model gives every picture the probabilities that another classifier gives it.

    L_same = τ² · mean KL( softmax(a / τ)  ‖  softmax(logits / τ) )           on pictures as they are

a are the other classifier's logits, one row for each training picture, computed once before training and kept
in a file: no second network runs beside the first. The probabilities of wrong classes carry its likely
mistakes, so that the twin of a network agrees with it where both are wrong too (Hinton et al. 2015).
"""

from dataclasses import dataclass
from pathlib import Path

import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from torchsite.configs import check_bounds
from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.files import write_atomically
from torchsite.model import SITE
from torchsite.objective.term import Found, Memory, Step, Term
from torchsite.objective.views import UPRIGHT, View
from torchsite.shapes import Logits, Scalar

TENSOR = "logits"


class KeptAnswers(Memory):
    """The other classifier's logits, by the number of the picture; nothing is learnt."""

    answers: Tensor

    def __init__(self, answers: Logits) -> None:
        super().__init__()
        self.register_buffer("answers", answers)


@dataclass(frozen=True, kw_only=True)
class SameAnswers(Term, name="same_answers"):
    """`answers` is the file of the other's logits on the training pictures; see `write_answers`."""

    answers: str = ""
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.answers:
            raise ConfigError(
                "same_answers.answers: expected the file of another classifier's logits, got none"
            )
        check_bounds(self, "(0, ∞)", "temperature")

    def views(self) -> tuple[View, ...]:
        """The pictures as the other classifier saw them."""
        return (UPRIGHT,)

    def memory(self, model: SITE, data: Dataset) -> Memory:
        """What the file holds, which must fit the data and the classes."""
        answers, expected = read_answers(Path(self.answers)), (len(data), model.config.n_classes)
        if tuple(answers.shape) != expected:
            raise ConfigError(
                f"same_answers.answers: expected logits of shape {expected}, one row for each training "
                f"picture, {self.answers} holds {tuple(answers.shape)}: ask the classifier again"
            )
        return KeptAnswers(answers)

    def loss(self, step: Step, memory: Memory | None) -> Found:
        """The divergence, and how often both name the same class."""
        assert isinstance(memory, KeptAnswers)
        theirs = memory.answers[step.batch.rows.to(memory.answers.device)]
        ours = step.view("upright").run.logits
        agreement = (ours.argmax(1) == theirs.argmax(1)).float().mean()
        return Found(divergence(ours, theirs, self.temperature), {"agreement": agreement})


def divergence(ours: Logits, theirs: Logits, temperature: float = 1.0) -> Scalar:
    """τ² KL(theirs ‖ ours) at the temperature τ; zero if and only if the probabilities are the same."""
    log_ours, log_theirs = ((logits / temperature).log_softmax(1) for logits in (ours, theirs))
    return F.kl_div(log_ours, log_theirs, reduction="batchmean", log_target=True) * temperature**2


def write_answers(path: Path, logits: Logits) -> Path:
    """Keep a classifier's logits for the term, row by row of the training data."""
    return write_atomically(path, save({TENSOR: logits.detach().cpu().float().contiguous()}))


def read_answers(path: Path) -> Logits:
    """The logits of a file; what is none is an error."""
    try:
        return load_file(path)[TENSOR]
    except (OSError, SafetensorError, KeyError) as error:
        raise ConfigError(
            f"same_answers.answers: {path} holds no logits ({error}): write them again"
        ) from error
