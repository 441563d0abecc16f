"""The classical models that SITE's accuracy is compared with: one interface, `fit(data)`, `predict(images)`.

They see pictures as rows of pixels. `BASELINES[name](seed=0, threads=1, …)` builds one; all but the neural
additive model need the libraries of `torchsite[baselines]`.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32
from torch import Tensor, nn

from torchsite.data import Dataset, batches, to_float
from torchsite.errors import ConfigError, ShapeError, did_you_mean
from torchsite.extras import needed
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Images, Labels, Logits


class Baseline(ABC):
    """A classifier of pictures; `seed` is all its randomness, `threads` how many cores it may use.

    `options` are those of the model; one that it does not have is an error of its library.
    """

    usual: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, *, seed: int = 0, threads: int = 1, **options: Any) -> None:
        if threads < 1:
            raise ConfigError(f"threads: expected at least 1, got {threads}")
        for name in set(options) - set(self.usual or options):
            raise ConfigError(f"no option {name!r}: {did_you_mean(name, self.usual)}")
        self.seed, self.threads, self.options = seed, threads, {**self.usual, **options}
        self._shape: tuple[int, ...] | None = None

    def fit(self, data: Dataset) -> Self:
        """Learn from labelled pictures; whatever was learnt before is forgotten."""
        if not len(data):
            raise ConfigError(f"{data.title}: expected pictures to learn from, got none")
        self._fit(data)
        self._shape = tuple(data.images.shape[1:])
        return self

    def predict(self, images: Images) -> Labels:
        """The class of each picture; float images in [0, 1] of the shape learnt from."""
        if self._shape is None:
            raise ConfigError(f"this {type(self).__name__} has learnt nothing yet: call fit(data) first")
        if not images.is_floating_point() or tuple(images.shape[1:]) != self._shape:
            raise ShapeError(
                f"expected float images in [0, 1] of shape (batch, {', '.join(map(str, self._shape))}), "
                f"got {images.dtype} of shape {tuple(images.shape)}"
            )
        return self._predict(images) if len(images) else images.new_zeros(0, dtype=torch.int64)

    @abstractmethod
    def _fit(self, data: Dataset) -> None:
        """Learn from pictures of which there is at least one."""

    @abstractmethod
    def _predict(self, images: Images) -> Labels:
        """The classes of checked pictures."""


def rows_of(images: Images) -> Float32[np.ndarray, "batch pixels"]:
    """Pictures as rows of pixels, as numpy knows them."""
    return images.flatten(1).cpu().float().numpy()


def library(module: str, package: str = "scikit-learn") -> Any:
    """A module of an optional library; one that is missing is an error that says how to get it."""
    return needed(module, who="this baseline", install="torchsite[baselines]", package=package)


class ScikitLearn(Baseline):
    """An estimator of scikit-learn that takes rows of pixels."""

    estimator: Any = None

    def _fit(self, data: Dataset) -> None:
        estimator = self._build()
        with warnings.catch_warnings():
            # Stopping after a given number of steps is meant: `max_iter` is an option, not an accident.
            warnings.simplefilter("ignore", library("sklearn.exceptions").ConvergenceWarning)
            self.estimator = estimator.fit(rows_of(to_float(data.images)), data.labels.numpy())

    def _predict(self, images: Images) -> Labels:
        return torch.from_numpy(self.estimator.predict(rows_of(images))).to(images.device).long()

    @abstractmethod
    def _build(self) -> Any:
        """The untrained estimator."""


class DecisionTree(ScikitLearn):
    """One tree of questions about single pixels (CART), grown until its leaves are pure."""

    def _build(self) -> Any:
        return library("sklearn.tree").DecisionTreeClassifier(random_state=self.seed, **self.options)


class RandomForest(ScikitLearn):
    """The vote of many trees, each grown on a resample with a few pixels to choose from at every split."""

    def _build(self) -> Any:
        forest = library("sklearn.ensemble").RandomForestClassifier
        return forest(random_state=self.seed, n_jobs=self.threads, **self.options)


class LogisticRegression(ScikitLearn):
    """One weight per pixel and class, with an L2 penalty; at most `max_iter` steps of L-BFGS."""

    def _build(self) -> Any:
        return library("sklearn.linear_model").LogisticRegression(random_state=self.seed, **self.options)


class XGBoost(Baseline):
    """Trees that correct each other, one per class and round, on histograms (Chen & Guestrin 2016).

    The sizes are XGBoost's own, with coarser histograms.
    """

    usual: ClassVar[Mapping[str, Any]] = {"rounds": 100, "max_depth": 6, "eta": 0.3, "max_bin": 64}
    booster: Any = None

    def _fit(self, data: Dataset) -> None:
        xgboost = library("xgboost", "xgboost-cpu")
        options = {**self.options, "nthread": self.threads}
        rounds, pixels = options.pop("rounds"), rows_of(to_float(data.images))
        bins = {"max_bin": options["max_bin"], "nthread": self.threads}
        table = xgboost.QuantileDMatrix(pixels, data.labels.numpy(), **bins)
        options |= {"objective": "multi:softmax", "num_class": len(data.classes), "tree_method": "hist"}
        options |= {"seed": self.seed, "verbosity": 0}
        self.booster = xgboost.train(options, table, num_boost_round=rounds)

    def _predict(self, images: Images) -> Labels:
        answers = self.booster.inplace_predict(rows_of(images))
        return torch.from_numpy(answers).to(images.device).long()


class AdditiveNetwork(nn.Module):
    """One small network per pixel, whose answers are summed (Agarwal et al. 2021).

        logit_k(x) = b_k + Σ_j f_jk(x_j),     f_j = a network of one input and `n_classes` outputs

    No pixel knows of another, so each f_j can be drawn as a curve. All networks run at once: the first layer
    is a product along the pixel axis, the next are einsums over it, and the last is one matrix product over
    pixels and units. With 16 units an epoch of CIFAR-10 takes about 40 seconds on one core.
    """

    def __init__(self, n_pixels: int, n_classes: int, hidden: Sequence[int], rng: Rng) -> None:
        super().__init__()
        first = hidden[0]
        self.slopes = nn.Parameter(2 * torch.randn(n_pixels, first, generator=rng))
        self.knots = nn.Parameter(torch.rand(n_pixels, first, generator=rng))
        self.weights = nn.ParameterList(
            nn.Parameter(torch.randn(n_pixels, before, after, generator=rng) * (2 / before) ** 0.5)
            for before, after in pairwise(hidden)
        )
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(n_pixels, after)) for after in hidden[1:])
        self.answers = nn.Parameter(torch.zeros(n_pixels, hidden[-1], n_classes))
        self.bias = nn.Parameter(torch.zeros(n_classes))

    def forward(self, pixels: Float[Tensor, "batch pixels"]) -> Logits:
        """The sums of what all pixels say."""
        return torch.addmm(self.bias, self._hidden(pixels).flatten(1), self.answers.flatten(0, 1))

    def curves(self, pixels: Float[Tensor, "batch pixels"]) -> Float[Tensor, "batch pixels classes"]:
        """f_jk(x_j): what each pixel adds to each logit."""
        return torch.einsum("npu,puk->npk", self._hidden(pixels), self.answers)

    def _hidden(self, pixels: Float[Tensor, "batch pixels"]) -> Float[Tensor, "batch pixels units"]:
        maps = F.relu((pixels[:, :, None] - self.knots) * self.slopes)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            maps = F.relu(torch.einsum("npu,puv->npv", maps, weight) + bias)
        return maps


class NeuralAdditiveModel(Baseline):
    """The additive network, fitted with AdamW and one cycle of the learning rate."""

    usual: ClassVar[Mapping[str, Any]] = {"hidden": (16,), "epochs": 8, "batch_size": 128, "rate": 5e-4}
    network: AdditiveNetwork | None = None

    def _fit(self, data: Dataset) -> None:
        hidden, epochs, size, rate = (self.options[name] for name in self.usual)
        if not hidden or min(hidden) < 1:
            raise ConfigError(f"hidden: expected widths of at least 1, got {hidden}")
        rng = make_rng(self.seed, "nam", "weights")
        network = AdditiveNetwork(data.images[0].numel(), len(data.classes), hidden, rng)
        optimiser = torch.optim.AdamW(network.parameters(), weight_decay=0.1, fused=True)
        n_steps = epochs * -(-len(data) // size)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=n_steps)
        for epoch in range(epochs):
            rng = make_rng(self.seed, "nam", "order", epoch)
            for images, labels in batches(data, size, rng=rng):
                optimiser.zero_grad()
                F.cross_entropy(network(images.flatten(1)), labels).backward()
                optimiser.step()
                schedule.step()
        self.network = network.requires_grad_(False)

    def _predict(self, images: Images) -> Labels:
        assert self.network is not None
        parts = images.flatten(1).float().split(self.options["batch_size"])
        return torch.cat([self.network(part).argmax(1) for part in parts])


BASELINES: Mapping[str, type[Baseline]] = {
    "decision_tree": DecisionTree,
    "random_forest": RandomForest,
    "logistic_regression": LogisticRegression,
    "xgboost": XGBoost,
    "nam": NeuralAdditiveModel,
}
