"""Training: one visible loop (`loop.py`) on Lightning's Fabric, and the care around it."""

from torchsite.training.config import TrainingConfig
from torchsite.training.fit import Fitted, fit
from torchsite.training.sheet_watch import SheetWatch
from torchsite.training.watch import Watch

__all__ = ["Fitted", "SheetWatch", "TrainingConfig", "Watch", "fit"]
