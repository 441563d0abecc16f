"""A folder of pictures in, a trained model and its examination out: `torchsite train FOLDER --minutes 30`."""

from torchsite.autotrain.choices import Decision, Plan
from torchsite.autotrain.prepare import Prepared, audit_prepared, examine_prepared, prepare, train_prepared

__all__ = ["Decision", "Plan", "Prepared", "audit_prepared", "examine_prepared", "prepare", "train_prepared"]
