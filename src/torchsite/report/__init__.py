"""The report of one model: its page, its figures, its tables, all drawn from results.

The names below are imported when they are first used: who only formats a number need not wait for matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchsite.report.labels import write_labels_report
    from torchsite.report.model import model_figures, save_figures, write_model_report

__all__ = ["model_figures", "save_figures", "write_labels_report", "write_model_report"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'torchsite.report' has no attribute {name!r}")
    module = "labels" if name == "write_labels_report" else "model"
    return getattr(import_module(f"torchsite.report.{module}"), name)
