"""The training objective: terms as values, each with its loss function beside it.

Every module of this package is imported, so a term is known to recipes as soon as its file is here.
"""

import importlib
import pkgutil

from torchsite.objective.additive import AdditiveEvidence
from torchsite.objective.batch import Batch, Draws, Share
from torchsite.objective.classification import classification_loss
from torchsite.objective.equivariance import EquivarianceTerm
from torchsite.objective.hiding import TaughtByHiding
from torchsite.objective.ignored import IgnoredRegions
from torchsite.objective.objective import BlackBoxObjective, Objective, SiteObjective
from torchsite.objective.same_answers import SameAnswers
from torchsite.objective.term import Found, Memory, Step, Term
from torchsite.objective.transformation import TransformationTerm
from torchsite.objective.views import View

for _found in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_found.name}")

__all__ = [
    "AdditiveEvidence",
    "Batch",
    "BlackBoxObjective",
    "Draws",
    "EquivarianceTerm",
    "Found",
    "IgnoredRegions",
    "Memory",
    "Objective",
    "SameAnswers",
    "Share",
    "SiteObjective",
    "Step",
    "TaughtByHiding",
    "Term",
    "TransformationTerm",
    "View",
    "classification_loss",
]
