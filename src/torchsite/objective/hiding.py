"""Taught by hiding: the map ranks the patches of a picture as hiding each of them does.

    L_hiding = mean_i 1 - corr_p( soft Σ_{u ∈ p} e_i(u; x),  soft (logit_i(x) - logit_i(x without p)) )
    soft v   = asinh( v / (s · √mean_p v²) )

e_i is the evidence of class i, relative to all classes, and so are the logits; p are the patches of a grid
over the whole picture; what is hidden is replaced by a neutral filling. Of some pictures of every batch each
patch is hidden in turn and the model is asked as it is, without gradients: only the map learns, and being a
correlation the term asks for its shape, not for its size, so that the two cannot run away together. Few
patches decide and many say a little: `soft` lets the order of these count too. Additive evidence makes the
answers those of a sum; this term puts the summands in their places. What occlusion finds in as many passes
as there are patches, the map says in one.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.configs import check_bounds
from torchsite.model import SITE
from torchsite.modes import evaluating
from torchsite.objective.additive import NEUTRAL
from torchsite.objective.batch import Draws, Share
from torchsite.objective.term import Found, MapKind, Memory, Step, Term, own_and_all
from torchsite.objective.views import UPRIGHT, View, check_fills
from torchsite.shapes import Images, Masks, Size
from torchsite.transforms.fill import as_fill
from torchsite.transforms.patches import patch_numbers

OfPatches = Float[Tensor, "batch classes patches"]


@dataclass(frozen=True, kw_only=True)
class TaughtByHiding(Term, name="hiding"):
    """The correlation, over a grid of `patches` × `patches`, on the `portion` of the pictures of a batch.

    `softness` is s: the size, as a share of the usual one, below which differences count as they are, and
    above which by their ratio. `fill` are the fillings, one of them drawn for each picture. A picture costs
    as many forward passes as there are patches, and one more: a sixteenth of a batch and sixteen patches are
    one view more, without its backward pass.
    """

    maps: MapKind = "relative"
    patches: int = 4
    portion: float = 1 / 16
    softness: float = 0.1
    fill: tuple[str, ...] = NEUTRAL

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bounds(self, "[2, ∞)", "patches")
        check_bounds(self, "(0, 1]", "portion")
        check_bounds(self, "(0, ∞)", "softness")
        check_fills("hiding.fill", self.fill, NEUTRAL)

    def views(self) -> tuple[View, ...]:
        """The whole picture."""
        return (UPRIGHT,)

    def n_hidden(self, batch: int) -> int:
        """How many pictures of a batch have their patches hidden; at least one."""
        return max(1, round(self.portion * batch))

    def n_asked(self, batch: int) -> int:
        """These, whole and without each patch."""
        return self.n_hidden(batch) * (self.patches**2 + 1)

    def loss(self, step: Step, memory: Memory | None) -> Found:
        """1 - correlation, for all classes and for the picture's own."""
        del memory
        n = self.n_hidden(len(step.batch))
        maps = step.view("upright").evidence(self.maps)[:n]
        answers = self.answers(step.model, step.batch.images[:n], step.draws, step.batch.share)
        if self.maps == "relative":
            answers = answers - answers.mean(1, keepdim=True)
        said = F.adaptive_avg_pool2d(maps.float(), self.patches).flatten(2)
        done = answers[..., -1:] - answers[..., :-1]
        agreed = correlation(*(softened(values, self.softness) for values in (said, done)))
        return Found(own_and_all(1 - agreed, step.batch.labels[:n]))

    def answers(self, model: SITE, images: Images, draws: Draws, share: Share) -> OfPatches:
        """The logits of the pictures without each of their patches, and last of the whole ones."""
        drawn = torch.randint(len(self.fill), (draws.n,), generator=draws.rng("hiding way"))
        chosen = drawn[share.rows(draws.n)][: len(images)].to(images.device)
        ways = [as_fill(name).background(images) for name in self.fill]
        background = torch.stack(ways)[chosen, torch.arange(len(images), device=images.device)]
        shown = without_patches((images.shape[-2], images.shape[-1]), self.patches).to(images.device)
        hidden = torch.where(shown[:, None], images[:, None], background[:, None]).flatten(0, 1)
        with evaluating(model), torch.no_grad():
            logits = model(hidden).float()
        return logits.unflatten(0, (len(images), -1)).transpose(1, 2)


def without_patches(size: Size, patches: int) -> Masks:
    """For each patch of a grid, row by row: True where it is not; last, all of the picture."""
    numbers = patch_numbers(size, (patches, patches))
    return numbers != torch.arange(patches**2 + 1)[:, None, None]


def softened(values: OfPatches, softness: float) -> OfPatches:
    """The logarithm of the size, with its sign, if well above the share `softness` of the usual one."""
    size = values.square().mean(-1, keepdim=True).clamp_min(1e-12).sqrt()
    return torch.asinh(values / (softness * size))


def correlation(one: OfPatches, other: OfPatches) -> Float[Tensor, "batch classes"]:
    """Pearson's correlation over the patches; 0 where one of them is constant."""
    one, other = (values - values.mean(-1, keepdim=True) for values in (one, other))
    return F.cosine_similarity(one, other, dim=-1, eps=1e-6)
