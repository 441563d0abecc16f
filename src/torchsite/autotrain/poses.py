"""Which poses fit the pictures: full turns, or small ones where the pictures have an upright orientation.

| name | poses | for |
|---|---|---|
| any | full turns, mirrors, ±10 % shift | microscopy, satellite pictures, parts on a belt |
| upright | ±15°, ±10 % shift | photographs, faces, letters |
| paper | ±90°, ±25 % shift | comparisons with the paper |

"auto" detects the orientation: a linear classifier of cheap features (colours of a coarse grid, directions of
edges) learns to classify the four quarter turns of a picture, tested on other pictures (four folds). If it
can, the pictures are upright, and a model that ignored turns would lose what it could use; if not, any turn
may do.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.data import Dataset, to_float
from torchsite.errors import ConfigError, did_you_mean
from torchsite.randomness import make_rng
from torchsite.shapes import Images
from torchsite.transforms import TransformFamily

# Large shifts: a blob in the middle follows small ones well enough, and turns and mirrors perfectly.
POSES: Mapping[str, TransformFamily] = {
    "any": TransformFamily(max_rotation=180.0, max_shift=0.25, reflect=True),
    "upright": TransformFamily(max_rotation=15.0, max_shift=0.25),
    "paper": TransformFamily(),
}
AUTO = "auto"
N_ASKED = 600
TURNS = 4
FOLDS = 4
Turned = Float[Tensor, "pictures turns features"]
CELLS, EDGE_CELLS, DIRECTIONS = 6, 4, 8
RIDGE = 10.0
TOLD = 0.45  # of four turns: chance is 0.25, single objects seen from above stay near it
SURE = 4.0


@dataclass(frozen=True)
class Guess:
    """Which poses fit, the accuracy on turns of unseen pictures, and the number of pictures."""

    poses: str
    accuracy: float
    n: int

    @property
    def why(self) -> str:
        """The reason in words."""
        share = f"a linear classifier tells the quarter turn of {self.accuracy:.0%} of {self.n} pictures"
        if self.poses == "upright":
            return f"{share} (chance 25 %): they are upright; --poses any if turns do not matter"
        return f"{share} (chance 25 %): no turn is the right one; --poses upright if there is one"


def family_of(name: str) -> TransformFamily:
    """The poses of a name."""
    if name not in POSES:
        raise ConfigError(f"poses: no {name!r}: {did_you_mean(name, [AUTO, *POSES])}")
    return POSES[name]


def guess_poses(data: Dataset, seed: int = 0) -> Guess:
    """Whether the pictures have an upright orientation: a small classifier recognises quarter turns."""
    rows = torch.randperm(len(data), generator=make_rng(seed, "poses"))[:N_ASKED]
    images = to_float(data.images[rows])
    side = min(images.shape[-2:])
    top, left = (images.shape[-2] - side) // 2, (images.shape[-1] - side) // 2
    squares = images[..., top : top + side, left : left + side]  # the shape of the frame must not tell
    if len(squares) < FOLDS:
        return Guess("any", 0.0, 0)
    accuracy = turn_accuracy(squares)
    noise = math.sqrt(0.25 * 0.75 / len(squares))  # the four turns of a picture are not independent
    told = accuracy > max(TOLD, 1 / TURNS + SURE * noise)
    return Guess("upright" if told else "any", accuracy, len(squares))


def turn_accuracy(images: Images) -> float:
    """The accuracy of a ridge regression on quarter turns, by cross-validation."""
    features = torch.stack([cheap_features(images.rot90(turn, (-2, -1))) for turn in range(TURNS)], dim=1)
    folds = torch.arange(len(images)) % FOLDS
    right = [
        _told(features[folds != fold].double(), features[folds == fold].double()) for fold in range(FOLDS)
    ]
    return sum(right) / (TURNS * len(images))


def _told(known: Turned, asked: Turned) -> int:
    """How many quarter turns of `asked` a ridge regression fitted to `known` classifies correctly."""
    targets = torch.eye(TURNS, dtype=known.dtype).repeat(len(known), 1) - 1 / TURNS
    truth = torch.arange(TURNS).repeat(len(asked))
    ours, theirs = known.flatten(0, 1), asked.flatten(0, 1)
    mean, std = ours.mean(0), ours.std(0).clamp_min(1e-3)
    ours, theirs = ((rows - mean) / std for rows in (ours, theirs))
    gram = ours.T @ ours + RIDGE * math.sqrt(len(ours)) * torch.eye(ours.shape[1], dtype=ours.dtype)
    weights = torch.linalg.solve(gram, ours.T @ targets)
    return int(((theirs @ weights).argmax(1) == truth).sum())


def cheap_features(images: Images) -> Float[Tensor, "pictures features"]:
    """The colours of a coarse grid, and how much edge of which direction its cells have."""
    colours = F.adaptive_avg_pool2d(images, CELLS).flatten(1)
    grey = images.mean(1, keepdim=True)
    across, down = grey[..., 1:-1, 2:] - grey[..., 1:-1, :-2], grey[..., 2:, 1:-1] - grey[..., :-2, 1:-1]
    strength = (across.square() + down.square()).sqrt()
    sector = ((torch.atan2(down, across) / (2 * math.pi) + 0.5) * DIRECTIONS).long().clamp_max(DIRECTIONS - 1)
    edges = F.one_hot(sector[:, 0], DIRECTIONS).movedim(-1, 1) * strength
    return torch.cat([colours, F.adaptive_avg_pool2d(edges, EDGE_CELLS).sqrt().flatten(1)], dim=1)
