"""Readable prototypes: frozen auxiliary classifiers name the prototype of class i as i.

    L_read = E over i and the readers r of CE( r(A w_i), i )

for classes i drawn at random in every view. A may carry back upright or into a new pose, moves, blurs, dims
and noises; r are small networks that were trained first and are frozen (`readers.py`). Features must be
pictures, F1 = identity: then the gradient goes into the generator alone. The model itself cannot be the
reader: it learns to write what only it can read.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Int64
from torch import Tensor

from experiments.readers import READERS, Disturbance, Readers, train_reader
from torchsite.configs import check_bounds
from torchsite.data import Dataset
from torchsite.errors import ConfigError, did_you_mean
from torchsite.model import SITE
from torchsite.objective.term import Found, Memory, Seen, Step, Term
from torchsite.randomness import Rng
from torchsite.transforms import Transform, TransformFamily


@dataclass(frozen=True, kw_only=True)
class ReadablePrototypes(Term, name="readable_prototypes"):
    """`n_read` prototypes of each judged view are read, the weight growing over the share `ramp`.

    With `turned` two thirds of them are first carried back upright, or into new poses: what can be read in
    one pose alone is no picture. The `readers` learn for `reader_epochs` of the data, from `reader_seed`.
    """

    weight: float = 0.1
    ramp: float = 0.3
    n_read: int = 1
    turned: bool = False
    readers: tuple[str, ...] = ("strided", "pooled", "patched")
    reader_epochs: float = 2.0
    reader_seed: int = 0
    blur: float = 1.0
    dimming: float = 0.5
    noise: float = 0.15

    def __post_init__(self) -> None:
        super().__post_init__()
        for reader in self.readers:
            if reader not in READERS:
                raise ConfigError(f"{self.name}.readers: no {reader!r}: {did_you_mean(reader, READERS)}")
        if not self.readers:
            raise ConfigError(f"{self.name}.readers: expected at least one of {', '.join(READERS)}, got none")
        check_bounds(self, "[1, ∞)", "n_read")
        check_bounds(self, "(0, ∞)", "reader_epochs")
        check_bounds(self, "[0, ∞)", "ramp", "blur", "dimming", "noise")

    def check(self, model: SITE) -> None:
        """Prototypes must be pictures."""
        if not model.pixels_are_features:
            raise ConfigError(
                f"terms: {self.name} reads prototypes as pictures, which they are for feature_extractor: "
                f"identity alone, not for {model.config.feature_extractor}"
            )

    def memory(self, model: SITE, data: Dataset) -> Readers:
        """The readers, trained here."""
        family = model.config.family or TransformFamily()
        disturbance = Disturbance(blur=self.blur, dimming=self.dimming, noise=self.noise)
        networks = [
            train_reader(name, data, family, disturbance, epochs=self.reader_epochs, seed=self.reader_seed)
            for name in self.readers
        ]
        return Readers(networks, disturbance)

    def loss(self, step: Step, memory: Memory | None) -> Found:
        """The mean over views and pictures; and the share that was read as meant."""
        assert isinstance(memory, Readers)
        rng, disturb = step.draws.rng("readable prototypes"), memory.disturbance
        pictures, classes = [], []
        for seen in step.judged:
            prototypes = seen.run.prototypes
            for chosen in draw_classes(step, prototypes.shape[1], self.n_read, rng):
                rows, motion = torch.arange(len(chosen), device=chosen.device), self.motion(step, seen, rng)
                pictures.append(disturb(prototypes[rows, chosen], rng, step.batch.share, motion))
                classes.append(chosen)
        logits, meant = memory(torch.cat(pictures), rng), torch.cat(classes)
        share = (logits.detach().argmax(1) == meant).float().mean()
        return Found(self.strength(step) * F.cross_entropy(logits, meant), {"prototypes read": share})

    def motion(self, step: Step, seen: Seen, rng: Rng) -> Transform | None:
        """How the prototypes of a view are moved first: not at all, back upright, or into new poses."""
        way = int(torch.randint(3, (1,), generator=rng))
        if not self.turned or way == 0:
            return None
        back = seen.pose.inverse()
        if way == 1:
            return back
        poses = (step.model.config.family or TransformFamily()).sample(step.draws.n, rng=rng)
        return poses[step.batch.share.rows(step.draws.n)].to(back.device) @ back

    def strength(self, step: Step) -> float:
        """How far the weight has grown: 1 from the share `ramp` of the training on."""
        done = step.draws.position / step.draws.n_steps - self.start
        return min(1.0, done / self.ramp) if self.ramp else 1.0


def draw_classes(step: Step, n_classes: int, n: int, rng: Rng) -> Int64[Tensor, "n batch"]:
    """`n` different classes for each picture at hand, drawn for the whole global batch."""
    order = torch.rand(step.draws.n, n_classes, generator=rng).argsort(1)
    chosen = order[step.batch.share.rows(step.draws.n), :n].T
    return chosen.to(step.batch.labels.device)
