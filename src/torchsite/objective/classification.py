"""The classification loss: what every model is trained with, in every view in which it is judged."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.shapes import Labels, Logits, MultiHot, Scalar

ClassWeights = Float[Tensor, " classes"]


def classification_loss(
    logits: Logits, labels: Labels, label_smoothing: float = 0.0, weights: ClassWeights | None = None
) -> Scalar:
    """Cross-entropy of the logits, which are the sums of the explanations (equation l_cls).

    With `weights` each picture counts as much as its class does; the mean is over pictures all the same, so
    that equal parts of a batch average to the whole.
    """
    if weights is None:
        return F.cross_entropy(logits, labels, label_smoothing=label_smoothing)
    losses = F.cross_entropy(logits, labels, label_smoothing=label_smoothing, reduction="none")
    return (weights[labels] * losses).mean()


def multi_label_loss(logits: Logits, multi_hot: MultiHot, weights: ClassWeights | None = None) -> Scalar:
    """Binary cross-entropy of each logit, where several classes may be true; `weights` are those of a yes."""
    return F.binary_cross_entropy_with_logits(logits, multi_hot.to(logits), pos_weight=weights)


def yes_weights(multi_hot: MultiHot) -> ClassWeights:
    """How many pictures a class is not true of for each that it is, at most a hundred."""
    yes = multi_hot.sum(0).double()
    return ((len(multi_hot) - yes) / yes.clamp_min(1)).clamp(0.01, 100).float()


def balanced_weights(counts: Sequence[int]) -> ClassWeights:
    """n / (K · n_k): every class counts the same in all, and the mean over the pictures is 1."""
    numbers = torch.tensor(counts, dtype=torch.float64)
    present = int((numbers > 0).sum())
    return torch.where(numbers > 0, numbers.sum() / (present * numbers.clamp_min(1)), 0.0).float()
