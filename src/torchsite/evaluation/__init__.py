"""Measure any model and any explainer, and keep the figures as results; independent of the paper."""

from torchsite.evaluation.compare import compare
from torchsite.evaluation.comparison import Cell, Comparison
from torchsite.evaluation.evaluate import evaluate
from torchsite.evaluation.examine import examine
from torchsite.evaluation.illustrate import illustrate

__all__ = ["Cell", "Comparison", "compare", "evaluate", "examine", "illustrate"]
