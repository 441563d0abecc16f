"""The classical models that SITE's accuracy is compared with: one interface, `fit(data)`, `predict(images)`.

They see pictures as rows of pixels. `BASELINES[name](seed=0, threads=1, …)` builds one; all but the neural
additive model need the libraries of `torchsite[baselines]`.
"""

from collections.abc import Mapping

from experiments.baselines.additive import NeuralAdditiveModel
from experiments.baselines.boosting import XGBoost
from experiments.baselines.classical import DecisionTree, LogisticRegression, RandomForest
from experiments.baselines.contract import Baseline

BASELINES: Mapping[str, type[Baseline]] = {
    "decision_tree": DecisionTree,
    "random_forest": RandomForest,
    "logistic_regression": LogisticRegression,
    "xgboost": XGBoost,
    "nam": NeuralAdditiveModel,
}

__all__ = [
    "BASELINES",
    "Baseline",
    "DecisionTree",
    "LogisticRegression",
    "NeuralAdditiveModel",
    "RandomForest",
    "XGBoost",
]
