"""Tables, figures and pages, drawn from results."""

from torchsite.report.model import model_figures, save_figures, write_model_report

__all__ = ["model_figures", "save_figures", "write_model_report"]
