"""Training: Lightning does the loop; what is ours is the objective, the exemplars and the care."""

from torchsite.training.config import TrainingConfig
from torchsite.training.fit import Fitted, fit

__all__ = ["Fitted", "TrainingConfig", "fit"]
