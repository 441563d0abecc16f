"""Training: one visible loop (`loop.py`) on Lightning's Fabric, and the care around it."""

from torchsite.training.callback import Callback
from torchsite.training.config import TrainingConfig
from torchsite.training.fit import Fitted, fit
from torchsite.training.sheets import ExplanationSheets

__all__ = ["Callback", "ExplanationSheets", "Fitted", "TrainingConfig", "fit"]
