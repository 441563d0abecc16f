"""Neural additive model: one small network per pixel, whose answers are summed (Agarwal et al. 2021).

    logit_k(x) = b_k + Σ_j f_jk(x_j),     f_j = a network of one input and `n_classes` outputs

No pixel knows of another, so each f_j can be drawn as a curve. All networks run at once: the first layer is
a product along the pixel axis, the next are einsums over it, and the last is one matrix product over pixels
and units. Units are ReLU, or the paper's ExU, min(relu((x - b) · exp(w)), 1), for jagged functions.

Cost: with 16 units, a batch of 128 pictures of 3,072 pixels is 6.3 M activations; an epoch of CIFAR-10 takes
about 40 seconds on one core.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from experiments.baselines.contract import Baseline
from torchsite.data import Dataset, batches
from torchsite.errors import ConfigError
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Images, Labels, Logits

Units = Literal["relu", "exu"]


class AdditiveNetwork(nn.Module):
    """The networks of all pixels side by side; `curves` gives what each pixel adds to each logit."""

    def __init__(self, n_pixels: int, n_classes: int, hidden: Sequence[int], units: Units, rng: Rng) -> None:
        super().__init__()
        first = hidden[0]
        self.units = units
        self.slopes = nn.Parameter(_first_slopes(n_pixels, first, units, rng))
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
        distance = pixels[:, :, None] - self.knots
        if self.units == "exu":
            maps = (distance * self.slopes.exp()).clamp(0, 1)
        else:
            maps = F.relu(distance * self.slopes)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            maps = F.relu(torch.einsum("npu,puv->npv", maps, weight) + bias)
        return maps


class NeuralAdditiveModel(Baseline):
    """The additive network, fitted with AdamW and one cycle of the learning rate."""

    def __init__(
        self,
        *,
        hidden: Sequence[int] = (16,),
        units: Units = "relu",
        epochs: int = 8,
        batch_size: int = 128,
        learning_rate: float = 5e-4,
        weight_decay: float = 0.1,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        super().__init__(seed=seed, threads=threads)
        if not hidden or min(hidden) < 1 or units not in ("relu", "exu"):
            raise ConfigError(
                f"expected hidden widths of at least 1 and units 'relu' or 'exu', got {hidden}, {units!r}"
            )
        self.hidden, self.units = tuple(hidden), units
        self.epochs, self.batch_size = epochs, batch_size
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.network: AdditiveNetwork | None = None

    def _fit(self, data: Dataset) -> None:
        n_pixels, n_classes = data.images[0].numel(), len(data.classes)
        network = AdditiveNetwork(
            n_pixels, n_classes, self.hidden, self.units, make_rng(self.seed, "nam", "weights")
        )
        optimiser = torch.optim.AdamW(network.parameters(), weight_decay=self.weight_decay, fused=True)
        n_steps = self.epochs * -(-len(data) // self.batch_size)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, self.learning_rate, total_steps=n_steps)
        for epoch in range(self.epochs):
            rng = make_rng(self.seed, "nam", "order", epoch)
            for images, labels in batches(data, self.batch_size, rng=rng):
                optimiser.zero_grad()
                F.cross_entropy(network(images.flatten(1)), labels).backward()
                optimiser.step()
                schedule.step()
        self.network = network.requires_grad_(False)

    def _predict(self, images: Images) -> Labels:
        assert self.network is not None
        parts = images.flatten(1).float().split(self.batch_size)
        return torch.cat([self.network(part).argmax(1) for part in parts])


def _first_slopes(n_pixels: int, n_units: int, units: Units, rng: Rng) -> Tensor:
    """Slopes of either sign for ReLU; logarithms of steep ones, as in the paper, for ExU."""
    normal = torch.randn(n_pixels, n_units, generator=rng)
    return 3 + 0.5 * normal if units == "exu" else 2 * normal
