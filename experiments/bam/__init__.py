"""Objects pasted on scenes: how the pictures are composed, what is measured on them, and what was found."""

from collections.abc import Mapping

from experiments.bam.dataset import BamDataset
from experiments.bam.metric import BAM, BAMResult, OfBoth, insignificant_patch
from experiments.bam.object_motion import ObjectMotion, ObjectMotionResult
from experiments.bam.sources import compose_bam, load_bam

# Measures that are fed with more than single pictures: a table of methods has no place for them.
METRICS_OF_PAIRS: Mapping[str, type[OfBoth]] = {"bam": BAM, "object_motion": ObjectMotion}

__all__ = [
    "BAM",
    "METRICS_OF_PAIRS",
    "BAMResult",
    "BamDataset",
    "ObjectMotion",
    "ObjectMotionResult",
    "compose_bam",
    "insignificant_patch",
    "load_bam",
]
