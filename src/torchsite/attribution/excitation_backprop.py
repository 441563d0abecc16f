"""Excitation backpropagation: a random walk from the class to the units that made it win.

    P(x_j) = Σ_i P(x_j | y_i) · P(y_i),     P(x_j | y_i) = x_j·w_ij⁺ / Σ_k x_k·w_ik⁺

starts with probability 1 on the class and goes down to the explained layer; `excitation_rules` has the rule
of every operation. The heatmap is Σ_c P at the layer, brought to image size bilinearly. At the layer it sums
to 1, less what reached units to which nobody contributed and what by-passed the layer.

The contrastive form subtracts, at the last weighted layer, the walk of the dual unit with negated weights,

    P(x_j | y) - P(x_j | ȳ),    ȳ with weights -w,

and walks the signed difference down: what speaks for the class more than for anything else. It needs a model
whose logits come straight from a weighted layer.

Zhang et al.: Top-down neural attention by excitation backprop, ECCV 2016, sections 3.2 and 3.3.
"""

import torch
from torch.autograd.graph import Node
from torch.nn import functional as F

from torchsite.attribution import excitation_rules as rules
from torchsite.attribution.contract import LayerAttribution
from torchsite.attribution.interception import (
    Interception,
    audit,
    is_replaced,
    kind_of,
    nodes_between,
    refuse_opaque,
)
from torchsite.attribution.layers import captured, resized, watched
from torchsite.errors import NotApplicableError
from torchsite.shapes import Heatmaps, Images, Labels, Logits

TITLE = "excitation backprop"


class ExcitationBackprop(LayerAttribution):
    """The probability that a position of a layer made the class win; non-negative activations only."""

    def _explain_layer(self, name: str, images: Images, classes: Labels) -> Heatmaps:
        refuse_opaque(self.model, TITLE)
        with watched(self.model, name) as layer, captured(layer) as found:
            with Interception(rules.RULES).following(self.model):
                logits = self._logits(classes)(images.requires_grad_())
            values = found[0]
        audit(nodes_between(logits, values), lambda kind, _: kind in rules.MOVES, TITLE)
        self._prepare(logits)
        won = F.one_hot(classes, logits.shape[1]).to(logits)
        (probability,) = torch.autograd.grad(logits, values, won, allow_unused=True)
        if probability is None:
            raise NotApplicableError(f"the logits do not depend on layer {name!r}: name another")
        return resized(probability.sum(1), images.shape[-2:])

    def _prepare(self, logits: Logits) -> None:
        """Nothing to prepare: probability 1 on the class, 0 elsewhere, is the start."""


class ContrastiveExcitationBackprop(ExcitationBackprop):
    """What made this class win rather than its opposite; signed, and 0 in sum."""

    def _prepare(self, logits: Logits) -> None:
        _top(logits).rule = rules.contrasted  # type: ignore[attr-defined]


def _top(logits: Logits) -> Node:
    """The weighted layer that the logits come from, through nothing but a constant or a change of shape."""
    node = logits.grad_fn
    while node is not None:
        if is_replaced(node) and node.rule is rules.weighted:  # type: ignore[attr-defined]
            return node
        inputs = [child for child, _ in node.next_functions if child is not None]
        single = len(inputs) == 1 and (is_replaced(node) or kind_of(node) in rules.MOVES)
        node = inputs[0] if single else None
    raise NotApplicableError(
        "contrastive excitation backprop negates the weights of the layer that the logits come from, "
        "and here they come from a product or a sum without weights: use excitation_backprop"
    )
