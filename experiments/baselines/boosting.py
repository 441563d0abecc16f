"""XGBoost: trees that correct each other, one per class and round (Chen & Guestrin 2016)."""

from typing import Any

import torch

from experiments.baselines.contract import Baseline, library, rows_of
from torchsite.data import Dataset, to_float
from torchsite.shapes import Images, Labels


class XGBoost(Baseline):
    """Gradient boosting on histograms of the pixels; the sizes are XGBoost's own, with coarser histograms."""

    def __init__(
        self,
        *,
        n_rounds: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.3,
        n_bins: int = 64,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        super().__init__(seed=seed, threads=threads)
        self.n_rounds = n_rounds
        self.max_depth, self.learning_rate, self.n_bins = max_depth, learning_rate, n_bins
        self.booster: Any = None

    def _fit(self, data: Dataset) -> None:
        xgboost = library("xgboost", "xgboost-cpu")
        pixels = xgboost.QuantileDMatrix(
            rows_of(to_float(data.images)),
            data.labels.numpy(),
            max_bin=self.n_bins,
            nthread=self.threads,
        )
        options = {
            "objective": "multi:softmax",
            "num_class": len(data.classes),
            "max_depth": self.max_depth,
            "eta": self.learning_rate,
            "max_bin": self.n_bins,
            "tree_method": "hist",
            "seed": self.seed,
            "nthread": self.threads,
            "verbosity": 0,
        }
        self.booster = xgboost.train(options, pixels, num_boost_round=self.n_rounds)

    def _predict(self, images: Images) -> Labels:
        answers = self.booster.inplace_predict(rows_of(images))
        return torch.from_numpy(answers).to(images.device).long()
