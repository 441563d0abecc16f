"""Training: one visible loop (`loop.py`) on Lightning's Fabric, and the care around it."""

from torchsite.training.callback import Callback
from torchsite.training.config import TrainingConfig
from torchsite.training.fit import Fitted, fit
from torchsite.training.sheets import ExplanationSheets

__all__ = ["Callback", "ExplanationSheets", "Fitted", "TrainingConfig", "fit"]

_RENAMED = {"Watch": "Callback", "SheetWatch": "ExplanationSheets"}


def __getattr__(name: str) -> None:
    if name in _RENAMED:
        raise ImportError(f"torchsite.training.{name} is called {_RENAMED[name]} now")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
