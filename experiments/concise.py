"""Sparsity penalty (L1/L2): the evidence for the picture's own class stands in few cells.

    L_concise = (|e|₁ / |e|₂) / √n,    n cells; between 1/√n (one cell) and 1 (all cells alike)

Whatever its size. It may only be asked for beside a term that ties evidence to what is seen (additive
evidence): alone, any cell would do.
"""

from dataclasses import dataclass

import torch

from torchsite.objective.term import Found, Memory, Step, Term
from torchsite.objective.views import UPRIGHT, View
from torchsite.shapes import Heatmaps, Scores


@dataclass(frozen=True, kw_only=True)
class ConciseEvidence(Term, name="concise_evidence"):
    """The relative map of the own class, on the upright picture."""

    def views(self) -> tuple[View, ...]:
        """The whole picture."""
        return (UPRIGHT,)

    def loss(self, step: Step, memory: Memory | None) -> Found:
        """The mean over the pictures."""
        del memory
        evidence = step.view("upright").evidence("relative")
        own = evidence[torch.arange(len(evidence)), step.batch.labels]
        return Found(spread_of(own).mean())


def spread_of(maps: Heatmaps) -> Scores:
    """(|e|₁ / |e|₂) / √n of each map; 0 for a map of zeros."""
    flat = maps.flatten(1)
    return flat.abs().sum(1) / flat.norm(dim=1).clamp_min(1e-6) / flat.shape[1] ** 0.5
