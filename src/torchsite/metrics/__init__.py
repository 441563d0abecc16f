"""Measures of explanations, each beside what a map without information would have got."""

from collections.abc import Mapping

from torchsite.metrics.accuracy import Accuracy
from torchsite.metrics.completeness import Completeness
from torchsite.metrics.estimate import Estimate, plain
from torchsite.metrics.explainer import Explainer, as_explainer
from torchsite.metrics.measure import Batch, Measure
from torchsite.metrics.pointing_game import PointingGame, box_regions, strokes
from torchsite.metrics.poses import Poses
from torchsite.metrics.self_consistency import SelfConsistency, self_consistency

METRICS: Mapping[str, type[Measure]] = {
    "accuracy": Accuracy,
    "completeness": Completeness,
    "pointing_game": PointingGame,
    "self_consistency": SelfConsistency,
}

__all__ = [
    "METRICS",
    "Accuracy",
    "Batch",
    "Completeness",
    "Estimate",
    "Explainer",
    "Measure",
    "PointingGame",
    "Poses",
    "SelfConsistency",
    "as_explainer",
    "box_regions",
    "plain",
    "self_consistency",
    "strokes",
]
