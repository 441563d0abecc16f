"""Decision tree, random forest and logistic regression on pixels, by scikit-learn."""

import warnings
from abc import abstractmethod
from typing import Any

import torch

from experiments.baselines.contract import Baseline, library, rows_of
from torchsite.data import Dataset, to_float
from torchsite.shapes import Images, Labels

PACKAGE = "scikit-learn"


class _ScikitLearn(Baseline):
    """What the three share: an estimator that takes rows of pixels."""

    estimator: Any = None

    def _fit(self, data: Dataset) -> None:
        estimator = self._build()
        with warnings.catch_warnings():
            # Stopping after a given number of steps is meant: `n_steps` is an option, not an accident.
            warnings.simplefilter("ignore", library("sklearn.exceptions", PACKAGE).ConvergenceWarning)
            self.estimator = estimator.fit(rows_of(to_float(data.images)), data.labels.numpy())

    def _predict(self, images: Images) -> Labels:
        return torch.from_numpy(self.estimator.predict(rows_of(images))).to(images.device).long()

    @abstractmethod
    def _build(self) -> Any:
        """The untrained estimator."""


class DecisionTree(_ScikitLearn):
    """One tree of questions about single pixels (CART), grown until its leaves are pure or `max_depth`."""

    def __init__(self, *, max_depth: int | None = None, seed: int = 0, threads: int = 1) -> None:
        super().__init__(seed=seed, threads=threads)
        self.max_depth = max_depth

    def _build(self) -> Any:
        tree = library("sklearn.tree", PACKAGE).DecisionTreeClassifier
        return tree(max_depth=self.max_depth, random_state=self.seed)


class RandomForest(_ScikitLearn):
    """The vote of many trees, each grown on a resample with a few pixels to choose from at every split."""

    def __init__(self, *, n_trees: int = 100, seed: int = 0, threads: int = 1) -> None:
        super().__init__(seed=seed, threads=threads)
        self.n_trees = n_trees

    def _build(self) -> Any:
        forest = library("sklearn.ensemble", PACKAGE).RandomForestClassifier
        return forest(n_estimators=self.n_trees, random_state=self.seed, n_jobs=self.threads)


class LogisticRegression(_ScikitLearn):
    """One weight per pixel and class, with an L2 penalty; at most `n_steps` steps of L-BFGS."""

    def __init__(
        self, *, n_steps: int = 100, inverse_penalty: float = 1.0, seed: int = 0, threads: int = 1
    ) -> None:
        super().__init__(seed=seed, threads=threads)
        self.n_steps, self.inverse_penalty = n_steps, inverse_penalty

    def _build(self) -> Any:
        regression = library("sklearn.linear_model", PACKAGE).LogisticRegression
        return regression(C=self.inverse_penalty, max_iter=self.n_steps, random_state=self.seed)
