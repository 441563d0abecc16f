"""How excitation backpropagation passes a probability back through one operation.

Every operation f that adds up non-negative contributions hands the probability p of its output to its
inputs in proportion to what each contributed:

    p' = x ⊙ f*(p / f(x))        f* the transpose (vector-Jacobian product) of the linear map f

which conserves the sum, Σp' = Σp, since Σ x·f*(r) = Σ f(x)·r. Where f(x) = 0 nobody contributed and the
probability ends there. With this one formula:

| operation | f |
|---|---|
| convolution, transposed convolution, linear | with weights W⁺ and no bias (Zhang et al., equation 2) |
| average pool, mean, sum over an axis | itself: its weights are non-negative |
| skip sum Σ_k x_k | p'_k = p·x_k⁺ / Σ_j x_j⁺ |
| bilinear or nearest resizing | itself, on x⁺ |
| product of k factors that depend on the picture | itself, split evenly: see below |
| times or divided by a constant c ≥ 0 | itself |
| plus or minus a constant; batch, group, layer norm | p' = p: bias and statistics are no inputs |
| activation (ReLU family, sigmoid, softplus, tanh, …) | p' = p: the unit is the same unit |
| reshape, permute, concatenate, pad, pixel shuffle, max pool | the gradient: p goes where x came from |

**Product.** y = Σ a ⊙ b (a gate, attention, or the product of prototypes and features) is linear in each of
its factors. By Euler's theorem Σ a·∂y/∂a = Σ b·∂y/∂b = y: either factor alone accounts for all of y, with no
ground to prefer one. Each of k factors therefore gets 1/k: p'_a = a ⊙ f_a*(p / y) / k. The sum is conserved.

**Positive parts.** Skip sums and resizing often come before the activation, where values have both signs. An
input that inhibits gets nothing there, as a negative weight does in a convolution; for x ≥ 0 nothing changes.

**Non-negative only.** A conditional probability needs x ≥ 0. An operation that receives negative values from
tanh, GELU, LeakyReLU or a normalised picture is refused with its name; what happens before the explained
layer does not matter, since no probability goes there.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from torchsite.attribution.interception import Call, Choose, Rule

SMALLEST = 1e-20
Linear = Callable[[Tensor], Tensor]


def shared_out(linear: Linear, values: Tensor, signal: Tensor) -> Tensor:
    """x ⊙ f*(p / f(x)), and 0 where f(x) = 0."""
    with torch.enable_grad():
        values = values.detach().requires_grad_()
        outputs = linear(values)
        shares = torch.where(outputs > SMALLEST, signal / outputs, 0)
        (back,) = torch.autograd.grad(outputs, values, shares.detach())
    return values.detach() * back


def weighted(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """Convolution or linear layer: f with W⁺ and no bias."""
    return (shared_out(_with_weights(call, +1), _only_input(call), signal),)


def contrasted(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """The top layer of the contrastive method: winners under W⁺ less winners under (-W)⁺."""
    values = _only_input(call)
    winners, losers = (shared_out(_with_weights(call, sign), values, signal) for sign in (+1, -1))
    return (winners - losers,)


def averaged(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """Sum, mean, average pool: f itself."""
    (values,) = _non_negative(call)
    return (shared_out(call.run, values, signal),)


def resized(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """Bilinear or nearest resizing: f itself, on the positive parts."""
    if call.argument("mode") == "bicubic":
        raise call.refusal(
            "bicubic weights are partly negative, excitation backprop has no rule: use bilinear"
        )
    return (shared_out(call.run, call.values[0].clamp(min=0), signal),)


def added(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """p·x_k⁺ / Σ_j x_j⁺ for the terms that depend on the picture; a constant term is a bias."""
    if call.argument("alpha", default=1) != 1:
        raise call.refusal("excitation backprop has no rule for a sum with alpha")
    values = call.values
    if len(values) == 1:
        return (signal.sum_to_size(values[0].shape),)
    parts = [value.clamp(min=0).expand(signal.shape) for value in values]
    total = torch.stack(parts).sum(0)
    shares = torch.where(total > SMALLEST, signal / total, 0)
    return tuple((part * shares).sum_to_size(value.shape) for part, value in zip(parts, values, strict=True))


def shifted(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """x - c: p; a difference of two things seen in the picture has no rule."""
    if call.slots not in ((0,), ("input",)):
        raise call.refusal("excitation backprop has no rule for a difference: the second term inhibits")
    return (signal.sum_to_size(call.values[0].shape),)


def multiplied(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """The k factors that depend on the picture get 1/k each; other factors are weights."""
    values = _non_negative(call)
    call = _with_positive_constants(call)
    shares = []
    for k, value in enumerate(values):
        others = lambda x, k=k: call.run(*values[:k], x, *values[k + 1 :])  # noqa: E731
        shares.append(shared_out(others, value, signal) / len(values))
    return tuple(shares)


def divided(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """x / c with c > 0."""
    divisor = torch.as_tensor(call.argument("other", 1))
    if call.slots not in ((0,), ("input",)) or bool((divisor <= 0).any()):
        raise call.refusal("excitation backprop has a rule for division by positive constants only")
    (values,) = _non_negative(call)
    return (shared_out(call.run, values, signal),)


def passed_on(call: Call, signal: Tensor) -> tuple[Tensor, ...]:
    """p itself."""
    if len(call.values) != 1 or call.values[0].shape != signal.shape:
        raise call.refusal("excitation backprop has a rule for activations and norms of one input only")
    return (signal,)


def _with_weights(call: Call, sign: int) -> Linear:
    weights = (sign * call.argument("weight", 1)).clamp(min=0)
    return call.having("weight", 1, weights).having("bias", 2, None).run


def _only_input(call: Call) -> Tensor:
    if call.slots not in ((0,), ("input",)):
        raise call.refusal("excitation backprop has no rule for weights that depend on the picture")
    return _non_negative(call)[0]


def _non_negative(call: Call) -> tuple[Tensor, ...]:
    lowest = min(float(value.min()) for value in call.values)
    if lowest < 0:
        raise call.refusal(
            f"excitation backprop needs non-negative activations, and values down to {lowest:.3g} come in: "
            "explain a later layer, or a model with ReLU or sigmoid in front of this one"
        )
    return call.values


def _with_positive_constants(call: Call) -> Call:
    """Constant factors are weights, so only their positive parts count; a negative number is refused."""
    for position, value in enumerate(call.args):
        if position in call.slots or isinstance(value, str):
            continue
        if isinstance(value, Tensor):
            call = call.having("", position, value.clamp(min=0))
        elif isinstance(value, int | float) and value < 0:
            raise call.refusal(f"excitation backprop has no rule for a factor of {value}")
    return call


ACTIVATIONS = frozenset(
    {
        "relu",
        "relu6",
        "leaky_relu",
        "prelu",
        "rrelu",
        "elu",
        "celu",
        "selu",
        "gelu",
        "silu",
        "mish",
        "softplus",
    }
    | {"hardswish", "hardtanh", "hardsigmoid", "sigmoid", "tanh", "softsign", "clamp", "clamp_min", "clip"}
    | {"threshold", "_threshold"}
)
NORMS = frozenset({"batch_norm", "instance_norm", "group_norm", "layer_norm"})
WEIGHTED = frozenset(
    {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}
)
AVERAGES = frozenset(
    {"sum", "mean", "avg_pool1d", "avg_pool2d", "avg_pool3d"}
    | {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"}
)
PRODUCTS = frozenset({"mul", "multiply", "matmul", "mm", "bmm", "einsum", "__rmul__", "__rmatmul__"})
MOVES = frozenset(
    {"View", "UnsafeView", "ReshapeAlias", "Reshape", "Permute", "Transpose", "T", "Cat", "Stack", "Split"}
    | {"SplitWithSizes", "Unbind", "Slice", "Select", "Index", "IndexSelect", "Expand", "Repeat", "Squeeze"}
    | {"Unsqueeze", "Clone", "Copy", "CopySlices", "ToCopy", "Alias", "AsStrided", "Flip", "Roll", "Unfold"}
    | {"ConstantPadNd", "ReflectionPad2D", "ReplicationPad2D", "PixelShuffle", "PixelUnshuffle"}
    | {"MaxPool2DWithIndices", "MkldnnMaxPool2D", "AdaptiveMaxPool2D", "Amax", "Max"}
)
"""Built-in nodes of the autograd graph that only move values: there the gradient is the rule."""


RULES_BY_NAMES: tuple[tuple[frozenset[str], Rule], ...] = (
    (ACTIVATIONS | NORMS, passed_on),
    (WEIGHTED, weighted),
    (AVERAGES, averaged),
    (frozenset({"interpolate", "upsample"}), resized),
    (PRODUCTS, multiplied),
    (frozenset({"div", "divide", "true_divide"}), divided),
    (frozenset({"add", "__radd__"}), added),
    (frozenset({"sub", "subtract"}), shifted),
)


def _always(rule: Rule) -> Choose:
    return lambda call: rule


RULES: Mapping[str, Choose] = {
    spelling: _always(rule)
    for names, rule in RULES_BY_NAMES
    for name in sorted(names)
    for spelling in (name, f"{name}_")
}
"""The rule of every function that has one, by name and by its in-place spelling."""
