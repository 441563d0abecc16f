"""The report of one model: its page, its figures, its tables, all drawn from results.

The names below are imported when they are first used: formatting a number does not load matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchsite.report.model import report_figures, write_report

__all__ = ["report_figures", "write_report"]

_RENAMED = {
    "model_figures": "report_figures",
    "write_labels_report": "write_report",
    "write_model_report": "write_report",
}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        raise AttributeError(f"torchsite.report.{name} is now torchsite.report.{_RENAMED[name]}")
    if name not in __all__:
        raise AttributeError(f"module 'torchsite.report' has no attribute {name!r}")
    return getattr(import_module("torchsite.report.model"), name)
