"""Guided backpropagation and DeConvNet: the gradient with another rule at the rectifiers.

With x the input of a rectifier f and p the signal that comes back to its output, the signal goes on as

    gradient      p' = f'(x) · p
    guided BP     p' = f'(x)⁺ · p⁺     for ReLU p⁺ · 1[x > 0]
    DeConvNet     p' = f∞(p)           for ReLU p⁺, whatever x was

and then, as for the gradient, heatmap(u) = max_c |p_c(u)| at the picture.

**Guided BP beyond ReLU.** The paper combines two conditions at a unit: its input lies where the unit
responds, and the signal says that the unit helps the class. f'(x)⁺·p⁺ is those two conditions for any
rectifier; for ReLU it is the paper's rule, for LeakyReLU, ELU, SELU, CELU, PReLU, Softplus (all increasing)
simply f'(x)·p⁺, and where GELU, SiLU, Mish or Hardswish dip (f' < 0) an input that lowers the unit gets
nothing.

**DeConvNet beyond ReLU.** The paper sends the signal back through the same rectification as the activations
went up. The signal has no scale of its own (the seed is a bare 1), so the rule must be positively
homogeneous; the homogeneous function that agrees with f on large signals is f∞(p) = lim f(t·p)/t for t → ∞.
It is p⁺ for ReLU, ELU, CELU, GELU, SiLU, Mish, Hardswish and Softplus, 1.0507·p⁺ for SELU, and f itself for
LeakyReLU and PReLU. A clipped rectifier (ReLU6, clamp(0, c)) is a ReLU followed by a clip, and the clip keeps
its gradient: p⁺ · 1[x < c].

**What is not a rectifier** keeps its true gradient: tanh, sigmoid, softmax, Hardtanh around 0, products,
norms, pooling, upsampling, transposed convolutions. Rectifiers are recognised as modules and as functions
alike, in place or not, reused or not; one that hides (a custom autograd function, `torch.maximum`) is an
error.

Where all rectifiers are `nn.ReLU` modules, each used once, the maps equal those of Captum's `GuidedBackprop`
and `Deconvolution`, which see nothing else.

Springenberg et al.: Striving for simplicity: the all convolutional net, ICLR workshop 2015.
Zeiler, Fergus: Visualizing and understanding convolutional networks, ECCV 2014.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from torchsite.attribution.contract import Attribution
from torchsite.attribution.interception import (
    Call,
    Choose,
    Interception,
    Rule,
    audit,
    nodes_between,
    refuse_opaque,
)
from torchsite.shapes import Heatmaps, Images, Labels

HALF_LINEAR = ("relu", "elu", "celu", "gelu", "silu", "softplus", "mish", "hardswish")
HOMOGENEOUS = ("leaky_relu", "prelu", "rrelu")
CLIPPED = ("hardtanh", "relu6", "clamp", "clip", "clamp_min", "clamp_max", "threshold", "_threshold")
SELU_SCALE = 1.0507009873554804934193349852946
HIDDEN = frozenset(
    {"Relu", "LeakyRelu", "Prelu", "PreluKernel", "Elu", "Celu", "Selu", "Gelu", "Silu", "Softplus", "Mish"}
    | {"Hardswish", "Hardtanh", "Threshold", "Clamp", "ClampMin", "ClampMax", "Maximum", "Minimum"}
    | {"RreluWithNoise"}
)


class _ModifiedGradient(Attribution):
    """The gradient under a table of rules for the rectifiers."""

    _rules: Mapping[str, Choose]

    @property
    @abstractmethod
    def _title(self) -> str:
        """The method's name in error messages."""

    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        refuse_opaque(self.model, self._title)
        return self._in_batches(self._slopes, images, classes)

    def _slopes(self, images: Images, classes: Labels) -> Heatmaps:
        images.requires_grad_()
        with Interception(self._rules).following(self.model):
            logits = self._logits(classes)(images)
        audit(nodes_between(logits, images), _visible, self._title)
        score = logits.gather(1, classes[:, None]).sum()
        return torch.autograd.grad(score, images)[0].abs().amax(1)


def _visible(kind: str, function: str | None) -> bool:
    """A rectifier may be left alone only by decision: then the table knows the function."""
    return kind not in HIDDEN or (function or "").removesuffix("_") in CLIPPED


def _guided(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """f'(x)⁺ · p⁺."""
    (values,) = call.values
    if call.name.removesuffix("_") == "relu":
        return (signal.clamp(min=0) * (values > 0),)
    with torch.enable_grad():
        values = values.requires_grad_()
        (slope,) = torch.autograd.grad(call.run(values).sum(), values)
    return (slope.clamp(min=0) * signal.clamp(min=0),)


def _half_linear(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """p⁺."""
    return (signal.clamp(min=0),)


def _half_linear_selu(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """1.0507 · p⁺."""
    return (SELU_SCALE * signal.clamp(min=0),)


def _homogeneous(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """f(p)."""
    return (call.run(signal),)


def _half_linear_clipped(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """p⁺ · 1[x < c]."""
    upper = _bounds(call)[1]
    below = torch.ones_like(signal) if upper is None else (call.values[0] < upper).to(signal)
    return (signal.clamp(min=0) * below,)


def _bounds(call: Call) -> tuple[Any, Any]:
    """Where a clip begins and ends."""
    name = call.name.strip("_")
    if name == "threshold":
        threshold, value = call.argument("threshold", 1), call.argument("value", 2)
        return (threshold, None) if threshold == value else (value, threshold)
    if name == "relu6":
        return 0, 6
    if name == "clamp_max":
        return None, call.argument("max", 1)
    lower, upper = ("min_val", "max_val") if name == "hardtanh" else ("min", "max")
    return call.argument(lower, 1), call.argument(upper, 2)


def _when_rectifying(rule: Rule) -> Choose:
    """The rule for a clip that begins at 0; any other clip is a saturation and keeps its gradient."""

    def choose(call: Call) -> Rule | None:
        lower, upper = _bounds(call)
        if isinstance(lower, Tensor) or isinstance(upper, Tensor):
            raise call.refusal("guided backprop and DeConvNet need the bounds of a clip as numbers")
        return rule if lower == 0 else None

    return choose


def _table(rules: Mapping[str, Rule], clipped: Rule) -> Mapping[str, Choose]:
    """Each rule under the function's name and its in-place spelling."""
    table: dict[str, Choose] = {name: (lambda call, rule=rule: rule) for name, rule in rules.items()}  # type: ignore[misc]
    table |= dict.fromkeys(CLIPPED, _when_rectifying(clipped))
    return table | {f"{name}_": choose for name, choose in table.items()}


class GuidedBackprop(_ModifiedGradient):
    """The gradient along units that respond and help the class: f'(x)⁺ · p⁺ at every rectifier."""

    _title = "guided backprop"
    _rules = _table(dict.fromkeys((*HALF_LINEAR, *HOMOGENEOUS, "selu"), _guided), _guided)


class DeConvNet(_ModifiedGradient):
    """The signal rectified on its way back as the activations were on theirs: f∞(p) at every rectifier."""

    _title = "DeConvNet"
    _rules = _table(
        dict.fromkeys(HALF_LINEAR, _half_linear)
        | dict.fromkeys(HOMOGENEOUS, _homogeneous)
        | {"selu": _half_linear_selu},
        _half_linear_clipped,
    )
