"""Measures of explanations, each beside what a map without information would have got.

`METRICS[name](explain, model, poses=…, n_classes=…)` is a torchmetrics `Metric`: `update(images, labels,
classes, indices, regions)`; `compute()` gives its scores as scalar tensors by name, for `MetricCollection`
and `self.log_dict`; `result()` gives all figures, with floors and intervals. `explain` is whatever
`as_explainer` takes.
"""

from collections.abc import Mapping

from torchsite.metrics.accuracy import Accuracy, AccuracyResult
from torchsite.metrics.bam import BAM, BAMResult, insignificant_patch
from torchsite.metrics.completeness import Completeness, CompletenessResult, completeness_error
from torchsite.metrics.energy_pointing import EnergyPointing, EnergyPointingResult
from torchsite.metrics.estimate import Estimate, plain, scores_of
from torchsite.metrics.explainer import Explainer, as_explainer
from torchsite.metrics.frame_control import FrameControl, FrameControlResult
from torchsite.metrics.grid_pointing import GridPointing, GridPointingResult
from torchsite.metrics.grouping import Curve
from torchsite.metrics.ignorant import IGNORANT
from torchsite.metrics.insertion_deletion import Deletion, Insertion, PerturbationResult
from torchsite.metrics.mask_k import MaskK, MaskKResult
from torchsite.metrics.measure import Batch, Bootstrapped, Measure, Passes
from torchsite.metrics.object_motion import ObjectMotion, ObjectMotionResult
from torchsite.metrics.one_map_share import OneMapShare, OneMapShareResult
from torchsite.metrics.patch_deletion import PatchDeletion, PatchDeletionResult
from torchsite.metrics.pointing_game import PointingGame, PointingGameResult, box_regions, strokes
from torchsite.metrics.poses import Poses
from torchsite.metrics.prediction_equivariance import PredictionEquivariance, PredictionEquivarianceResult
from torchsite.metrics.prototype_likeness import PrototypeLikeness, PrototypeLikenessResult
from torchsite.metrics.prototype_recognition import PrototypeRecognition, PrototypeRecognitionResult
from torchsite.metrics.sanity import Sanity, SanityResult
from torchsite.metrics.self_consistency import SelfConsistency, SelfConsistencyResult, self_consistency

METRICS: Mapping[str, type[Measure]] = {
    "accuracy": Accuracy,
    "completeness": Completeness,
    "deletion": Deletion,
    "energy_pointing": EnergyPointing,
    "frame_control": FrameControl,
    "grid_pointing": GridPointing,
    "insertion": Insertion,
    "mask_k": MaskK,
    "one_map_share": OneMapShare,
    "patch_deletion": PatchDeletion,
    "pointing_game": PointingGame,
    "prediction_equivariance": PredictionEquivariance,
    "prototype_likeness": PrototypeLikeness,
    "prototype_recognition": PrototypeRecognition,
    "sanity": Sanity,
    "self_consistency": SelfConsistency,
}

# Measures that are fed with more than single pictures: a table of methods has no place for them.
METRICS_OF_PAIRS: Mapping[str, type[Bootstrapped]] = {"bam": BAM, "object_motion": ObjectMotion}

__all__ = [
    "BAM",
    "IGNORANT",
    "METRICS",
    "METRICS_OF_PAIRS",
    "Accuracy",
    "AccuracyResult",
    "BAMResult",
    "Batch",
    "Bootstrapped",
    "Completeness",
    "CompletenessResult",
    "Curve",
    "Deletion",
    "EnergyPointing",
    "EnergyPointingResult",
    "Estimate",
    "Explainer",
    "FrameControl",
    "FrameControlResult",
    "GridPointing",
    "GridPointingResult",
    "Insertion",
    "MaskK",
    "MaskKResult",
    "Measure",
    "ObjectMotion",
    "ObjectMotionResult",
    "OneMapShare",
    "OneMapShareResult",
    "Passes",
    "PatchDeletion",
    "PatchDeletionResult",
    "PerturbationResult",
    "PointingGame",
    "PointingGameResult",
    "Poses",
    "PredictionEquivariance",
    "PredictionEquivarianceResult",
    "PrototypeLikeness",
    "PrototypeLikenessResult",
    "PrototypeRecognition",
    "PrototypeRecognitionResult",
    "Sanity",
    "SanityResult",
    "SelfConsistency",
    "SelfConsistencyResult",
    "as_explainer",
    "box_regions",
    "completeness_error",
    "insignificant_patch",
    "plain",
    "scores_of",
    "self_consistency",
    "strokes",
]
