"""What the prototypes are asked to resemble: the targets of the transformation loss, in [0, 1].

| targets | E over x_i of | asks of w_i | cost |
|---|---|---|---|
| mean | all pictures of class i | the average i, in this pose | none: a running mean |
| nearest | the pictures of class i nearest to x | an i that resembles this x | a table, once; look-ups |
| sampled | one random i each, as the authors do | as mean, noisily | classes × batch passes of F1 |

For F1 = identity the features of a picture are its pixels; otherwise they are stop-gradient features,
carried back to the canonical pose and remembered from the step that last saw the picture.
"""

import abc

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int32, Int64, UInt8
from torch import Tensor

from torchsite.data import Dataset, to_float
from torchsite.distributed import rows_of_all_ranks, sum_over_ranks
from torchsite.model import SITE
from torchsite.model.base import dtype_of
from torchsite.objective.batch import Rows, Share
from torchsite.objective.term import Memory
from torchsite.randomness import Rng
from torchsite.shapes import Features, Labels, Pixels
from torchsite.transforms import Transform

CHUNK = 1024
DECAY = 0.99  # of running means, at each step
WHOLE = Share()
Targets = Float[Tensor, "*batch classes depth rows cols"]
Exemplars = Float[Tensor, "batch classes exemplars depth rows cols"]
ClassSums = Float[Tensor, "classes depth rows cols"]
NearestTable = Int32[Tensor, "pictures classes nearest"]


class TargetSource(Memory, abc.ABC):
    """Gives the targets of a batch and learns from its features; what it has learnt is checkpointed."""

    @abc.abstractmethod
    def forward(self, rows: Rows, rng: Rng, share: Share = WHOLE) -> Targets:
        """Targets for these pictures, per class (and picture), in the canonical pose.

        `rng` draws for the whole global batch, of which the pictures are a share.
        """


class FixedMeans(TargetSource):
    """Class-mean pictures, computed once: the closed form for F1 = identity."""

    means: Tensor

    def __init__(self, data: Dataset) -> None:
        super().__init__()
        self.register_buffer("means", class_mean_images(data), persistent=False)

    def forward(self, rows: Rows, rng: Rng, share: Share = WHOLE) -> Targets:
        """The same means for every picture."""
        return self.means


class RunningMeans(TargetSource):
    """Class-mean features, a decaying mean over training batches: the closed form for learned features."""

    sums: Tensor
    weights: Tensor

    def __init__(self, n_classes: int, shape: tuple[int, int, int], decay: float = DECAY) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("sums", torch.zeros(n_classes, *shape))
        self.register_buffer("weights", torch.zeros(n_classes, 1, *shape[1:]))

    def forward(self, rows: Rows, rng: Rng, share: Share = WHOLE) -> Targets:
        """The means so far; one half, which asks for nothing, where nothing was seen yet."""
        means = self.sums / self.weights.clamp_min(1e-6)
        return torch.where(self.weights > 1e-6, means, torch.full_like(means, 0.5))

    def learn(self, features: Features, rows: Rows, labels: Labels, transform: Transform) -> None:
        """Add the sums of all ranks to the decayed old ones."""
        sums, weights = class_feature_sums(features, labels, transform, len(self.sums))
        for total, new in ((self.sums, sums), (self.weights, weights)):
            total.mul_(self.decay).add_(sum_over_ranks(new))


class NearestExemplars(TargetSource):
    """The mean of a few of the pictures of each class that are nearest to x."""

    bank: UInt8[Tensor, "pictures depth rows cols"]

    def __init__(
        self,
        data: Dataset,
        n_nearest: int,
        n_exemplars: int,
        shape: tuple[int, int, int] | None,
        apart: bool = False,
    ) -> None:
        super().__init__()
        self.apart = apart
        self.n_exemplars = n_exemplars
        self.learns = shape is not None
        self.register_buffer("table", nearest_exemplars(data, n_nearest), persistent=False)
        bank = data.images if shape is None else torch.full((len(data), *shape), 128, dtype=torch.uint8)
        self.register_buffer("bank", bank, persistent=self.learns)

    def forward(self, rows: Rows, rng: Rng, share: Share = WHOLE) -> Targets:
        """Means over `n_exemplars` neighbours, drawn anew for each batch."""
        table: Tensor = self.get_buffer("table")[rows.to(self.bank.device)]
        columns = torch.randperm(table.shape[-1], generator=rng)[: self.n_exemplars]
        chosen = table[:, :, columns.to(table.device)].long()
        exemplars = self.bank[chosen].float()
        return exemplars.div_(255) if self.apart else exemplars.mean(2).div_(255)

    def learn(self, features: Features, rows: Rows, labels: Labels, transform: Transform) -> None:
        """Remember the features of all ranks in the canonical pose, where the picture covers it."""
        if not self.learns:
            return
        back = transform.inverse()
        mask = back.mask((features.shape[-2], features.shape[-1])).unsqueeze(1)
        fresh = (back(features.detach()) * 255).round().clamp(0, 255).to(torch.uint8)
        places = rows.to(self.bank.device)
        renewed = torch.where(mask, fresh, self.bank[places])
        self.bank[rows_of_all_ranks(places)] = rows_of_all_ranks(renewed)


class SampledExemplars(TargetSource):
    """One random picture of each class per picture, sent through F1 each time: the authors' scheme."""

    def __init__(self, data: Dataset, model: SITE) -> None:
        super().__init__()
        self.images = data.images
        self.members = [torch.nonzero(data.labels == i).flatten() for i in range(len(data.classes))]
        self.model = [model]  # in a list: the model is not a part of its targets

    def forward(self, rows: Rows, rng: Rng, share: Share = WHOLE) -> Targets:
        """classes × batch additional forward passes through F1."""
        model = self.model[0]
        n = len(rows) * share.of
        chosen = sample_members(self.members, n, rng)[share.rows(n)]
        with torch.no_grad():
            device = next(model.parameters()).device
            images = to_float(self.images[chosen.flatten()]).to(device, dtype_of(model))
            features = model.features(images)
        return to_unit(features, model.bce_slope).unflatten(0, (len(rows), len(self.members)))


def to_unit(features: Features, slope: float) -> Features:
    """Bounded features as values in [0, 1]: tanh's (slope 2) are moved there, sigmoid's are there."""
    return (features + 1) / 2 if slope == 2.0 else features


def class_feature_sums(
    features: Features, labels: Labels, transform: Transform, n_classes: int
) -> tuple[ClassSums, Float[Tensor, "classes 1 rows cols"]]:
    """Sums and weights of the features of each class, carried back to the canonical pose.

    Dividing the one by the other, after adding over batches (and ranks), gives the class means: padding
    has weight 0, so it never enters.
    """
    back = transform.inverse()
    mask = back.mask((features.shape[-2], features.shape[-1])).unsqueeze(1).to(features.dtype)
    carried = back(features.detach()) * mask
    sums = features.new_zeros(n_classes, *features.shape[1:]).index_add_(0, labels, carried)
    weights = features.new_zeros(n_classes, *mask.shape[1:]).index_add_(0, labels, mask)
    return sums, weights


def class_mean_images(data: Dataset) -> Targets:
    """The mean picture of each class, in [0, 1]."""
    sums = torch.zeros(len(data.classes), *data.images.shape[1:], dtype=torch.float64)
    for images, labels in zip(data.images.split(CHUNK), data.labels.split(CHUNK), strict=True):
        sums.index_add_(0, labels, images.double())
    counts = torch.tensor(data.counts).clamp_min(1).view(-1, 1, 1, 1)
    return (sums / (255 * counts)).float()


def sample_members(members: list[Labels], n: int, rng: Rng) -> Int64[Tensor, "batch classes"]:
    """One random member of each class, for each of `n` pictures."""
    draws = torch.rand(n, len(members), generator=rng, dtype=torch.float64)
    sizes = torch.tensor([len(rows) for rows in members])
    picks = (draws * sizes).long()
    return torch.stack([rows[picks[:, i]] for i, rows in enumerate(members)], dim=1)


@torch.no_grad()
def nearest_exemplars(data: Dataset, k: int, side: int = 14, chunk: int = 1024) -> NearestTable:
    """For every picture and class, the `k` nearest other pictures of that class, nearest first.

    Nearness is the Euclidean distance of pixels, at no more than `side` pixels a side: one matrix product
    of all pictures with all. A class of fewer than k pictures repeats them.
    """
    points = _points(data.images, side)
    squares = points.square().sum(1)
    table = torch.empty(len(data), len(data.classes), k, dtype=torch.int32)
    for label in range(len(data.classes)):
        members = torch.nonzero(data.labels == label).flatten()
        for start in range(0, len(data), chunk):
            rows = torch.arange(start, min(start + chunk, len(data)))
            distances = torch.addmm(squares[members], points[rows], points[members].T, alpha=-2)
            distances.masked_fill_(rows[:, None] == members, torch.inf)
            nearest = distances.topk(min(k, max(1, len(members) - 1)), dim=1, largest=False).indices
            repeats = -(-k // nearest.shape[1])
            table[rows, label] = members[nearest].repeat(1, repeats)[:, :k].int()
    return table


def _points(pixels: Pixels, side: int) -> Tensor:
    """Pictures as points: pooled to at most `side` pixels a side, flattened."""
    size = (min(side, pixels.shape[-2]), min(side, pixels.shape[-1]))
    parts = [F.adaptive_avg_pool2d(to_float(part), size).flatten(1) for part in pixels.split(4096)]
    return torch.cat(parts)
