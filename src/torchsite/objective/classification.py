"""The classification loss: what every model is trained with, in every view in which it is judged."""

import torch.nn.functional as F

from torchsite.shapes import Labels, Logits, Scalar


def classification_loss(logits: Logits, labels: Labels, label_smoothing: float = 0.0) -> Scalar:
    """Cross-entropy of the logits, which are the sums of the explanations (equation l_cls)."""
    return F.cross_entropy(logits, labels, label_smoothing=label_smoothing)
