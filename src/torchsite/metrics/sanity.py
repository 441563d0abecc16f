"""Sanity: a map that stays when the weights go explains the picture, not the model (Adebayo et al., 2018).

    ρ_s = mean Spearman(I_f(x), I_{f_s}(x)),   f_s = f with the weights of s groups of layers randomised

Layers are randomised from the output downwards, each stage on top of those before. Randomised means: the
values of each parameter are permuted among themselves, so their scale stays. Only a copy of the model is
changed. ρ should fall to the floor: the rank correlation of the maps of different pictures under the model as
it is, which is above 0 where all maps share a shape. The class is held fixed. Beside the signed ρ stands that
of the absolute maps, which a change of sign alone cannot lower.

A multiplicative explanation such as SITE's w ⊙ x vanishes where the picture does, so it keeps some
correlation under any weights: compare with the floor, and read the prototypes. A map without information has
1 if it never changes (the picture itself) and 0 if it ranks nothing (a constant). Fails for a model without
weights, and for an explainer that is bound to its model.
"""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from torchsite.errors import ConfigError, NotApplicableError
from torchsite.metrics.estimate import Estimate, estimate, estimates, ratio
from torchsite.metrics.explainer import Explainer
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums
from torchsite.metrics.similarity import spearman
from torchsite.randomness import Rng, make_rng

N_STAGES = 4


class SanityResult(NamedTuple):
    """Rank correlation after each stage; the scores are those of the last stage."""

    stages: list[str]
    correlation: list[Estimate]
    absolute: list[Estimate]
    score: Estimate
    absolute_score: Estimate
    floor: Estimate


def weighted_layers(model: nn.Module) -> list[str]:
    """The modules that own weights, from the output to the input (in reverse order of registration)."""
    names = [name for name, module in model.named_modules() if _weights(module)]
    if not names:
        raise NotApplicableError(f"{type(model).__name__} has no weights to randomise")
    return names[::-1]


def randomise(model: nn.Module, names: Sequence[str], rng: Rng) -> nn.Module:
    """Permute, in place, the values of every parameter that the named modules own."""
    with torch.no_grad():
        for name in names:
            for parameter in _weights(model.get_submodule(name)):
                order = torch.randperm(parameter.numel(), generator=rng).to(parameter.device)
                parameter.copy_(parameter.flatten()[order].reshape(parameter.shape))
    return model


class Sanity(Measure):
    """Rank correlation of maps before and after the weights were randomised; lower is better."""

    higher_is_better = False
    needs_model = True
    headline = ("score", "floor")

    def __init__(
        self,
        explain: Any,
        model: Any = None,
        *,
        n_stages: int = N_STAGES,
        **options: Any,
    ) -> None:
        super().__init__(explain, model, **options)
        if n_stages < 1:
            raise ConfigError(f"n_stages: expected one or more, got {n_stages}")
        layers = weighted_layers(self.explainer.require_model())
        cuts = torch.arange(len(layers)).tensor_split(min(n_stages, len(layers)))
        self.groups = [[layers[i] for i in cut.tolist()] for cut in cuts]
        self._add_sums(3 + 2 * len(self.groups))

    def passes(self) -> Passes:
        """One map for the model, and one for each stage."""
        return Passes(1 + len(self.groups), 0)

    def _update(self, batch: Batch) -> Statistics:
        before = self.explainer(batch.images, batch.classes)
        paired = torch.full((len(batch),), float(len(batch) > 1), dtype=torch.float64)
        floor = spearman(before, before.roll(-1, 0)).cpu() * paired
        after = [explainer(batch.images, batch.classes) for explainer in self._randomised()]
        signed = [spearman(before, maps).cpu() for maps in after]
        absolute = [spearman(before.abs(), maps.abs()).cpu() for maps in after]
        return torch.stack([torch.ones_like(paired), paired, floor, *signed, *absolute], dim=1)

    def _randomised(self) -> Iterator[Explainer]:
        """The same explainer on a copy of the model, randomised further with every stage."""
        damaged = copy.deepcopy(self.explainer.require_model())
        for stage, names in enumerate(self.groups):
            randomise(damaged, names, make_rng(self.poses.seed, "randomised weights", stage))
            yield self.explainer.on(damaged)

    def _compute(self, sums: Sums) -> SanityResult:
        n, n_paired, floor = sums[:, :3].unbind(1)
        signed, absolute = ratio(sums[:, 3:], n[:, None]).unflatten(1, (2, -1)).unbind(1)
        return SanityResult(
            [" + ".join(group) for group in self.groups],
            estimates(signed),
            estimates(absolute),
            estimate(signed[:, -1]),
            estimate(absolute[:, -1]),
            estimate(ratio(floor, n_paired)),
        )


def _weights(module: nn.Module) -> list[nn.Parameter]:
    """What the module itself owns and a permutation can change."""
    return [parameter for parameter in module.parameters(recurse=False) if parameter.numel() > 1]
