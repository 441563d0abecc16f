"""Validation: measures on pictures that are not trained on, in the same poses every time."""

import torch

from torchsite.data import Dataset
from torchsite.distributed import notes_of_all_ranks
from torchsite.metrics import self_consistency
from torchsite.model import SITE, ImageClassifier
from torchsite.modes import evaluating
from torchsite.objective import Share
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Images, Labels, MultiHot
from torchsite.training.batches import look_up, parts_in_order
from torchsite.training.config import TrainingConfig
from torchsite.transforms import TransformFamily

PART = 250


@torch.no_grad()
def validate(model: ImageClassifier, data: Dataset, config: TrainingConfig, share: Share) -> dict[str, float]:
    """The means over the first `n_validation` pictures, which all processes share."""
    like, found = next(model.parameters()), []
    with evaluating(model):
        for rows in parts_in_order(min(len(data), config.n_validation), PART, share):
            number = int(rows[0]) // PART
            rng = make_rng(config.seed, "validation", number)
            images, labels = look_up(data, rows, like)
            truth = labels if data.multi_hot is None else data.multi_hot[rows].to(like.device)
            found.append((number, len(rows), measures(model, images, truth, config.family, rng)))
    parts = sorted((part for parts in notes_of_all_ranks(found) for part in parts), key=lambda part: part[0])
    total = sum(n for _, n, _ in parts)
    names = parts[0][2] if parts else {}
    return {name: sum(n * measured[name] for _, n, measured in parts) / total for name in names}


def measures(
    model: ImageClassifier, images: Images, truth: Labels | MultiHot, family: TransformFamily, rng: Rng
) -> dict[str, float]:
    """Accuracy upright and in random poses; for SITE, also how well the explanation follows the picture.

    With several labels, the accuracy is the share of right yes/no decisions.
    """
    accuracies, figures = {}, {}
    if isinstance(model, SITE):
        consistency = self_consistency(
            model, images, model(images).argmax(1), family=family, n_transforms=1, rng=rng, n_resamples=2
        )
        names = ("raw", "floor", "calibrated", "centred")
        figures = {name: getattr(consistency, name).value for name in names}
    pose = family.sample(len(images), rng=rng).to(images.device)
    for name, pictures in {"accuracy": images, "posed accuracy": pose(images)}.items():
        logits = model(pictures)
        answers = logits > 0 if model.config.multi_label else logits.argmax(1)
        accuracies[name] = float((answers == truth).float().mean())
    return accuracies | figures
