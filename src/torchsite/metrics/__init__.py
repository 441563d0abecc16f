"""Measures of explanations, each beside what a map without information would have got.

`METRICS[name](explain, model, poses=…, n_classes=…)` is a torchmetrics `Metric`: `update(images, labels,
classes, indices, regions)`; `compute()` gives its scores as scalar tensors by name, for `MetricCollection`
and `self.log_dict`; `result()` gives all figures, with floors and intervals. `explain` is whatever
`as_explainer` takes.
"""

from collections.abc import Mapping

from torchsite.metrics.completeness import Completeness, completeness_error
from torchsite.metrics.control_maps import CONTROL_MAPS
from torchsite.metrics.energy_pointing import EnergyPointing
from torchsite.metrics.estimate import Estimate, plain, scores_of
from torchsite.metrics.explainer import Explainer, as_explainer
from torchsite.metrics.frame_control import FrameControl
from torchsite.metrics.grid_pointing import GridPointing
from torchsite.metrics.grouping import Curve
from torchsite.metrics.insertion_deletion import Deletion, Insertion, LeRFMoRF
from torchsite.metrics.mask_k import MaskK
from torchsite.metrics.measure import Batch, Bootstrapped, Measure, Passes
from torchsite.metrics.one_map_share import OneMapShare
from torchsite.metrics.patch_deletion import PatchDeletion
from torchsite.metrics.pointing_game import PointingGame, box_regions, strokes
from torchsite.metrics.poses import Poses
from torchsite.metrics.predictions import Accuracy, PredictionEquivariance
from torchsite.metrics.prototypes import PrototypeLikeness, PrototypeRecognition
from torchsite.metrics.sanity import Sanity
from torchsite.metrics.self_consistency import SelfConsistency, self_consistency

METRICS: Mapping[str, type[Measure]] = {
    "accuracy": Accuracy,
    "completeness": Completeness,
    "deletion": Deletion,
    "energy_pointing": EnergyPointing,
    "frame_control": FrameControl,
    "grid_pointing": GridPointing,
    "insertion": Insertion,
    "lerf_morf": LeRFMoRF,
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

__all__ = [
    "CONTROL_MAPS",
    "METRICS",
    "Accuracy",
    "Batch",
    "Bootstrapped",
    "Completeness",
    "Curve",
    "Deletion",
    "EnergyPointing",
    "Estimate",
    "Explainer",
    "FrameControl",
    "GridPointing",
    "Insertion",
    "LeRFMoRF",
    "MaskK",
    "Measure",
    "OneMapShare",
    "Passes",
    "PatchDeletion",
    "PointingGame",
    "Poses",
    "PredictionEquivariance",
    "PrototypeLikeness",
    "PrototypeRecognition",
    "Sanity",
    "SelfConsistency",
    "as_explainer",
    "box_regions",
    "completeness_error",
    "plain",
    "scores_of",
    "self_consistency",
    "strokes",
]
