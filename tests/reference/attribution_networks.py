"""Small random networks, and a slow interpreter that re-derives methods on them from their formulas.

The interpreter knows nothing of autograd: a network is traced by hand, one picture at a time, into a list of
steps on flat float64 vectors, every linear step as a dense matrix; a method is a rule per kind of step.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


def small_vgg(seed, n_classes=4, activation=nn.ReLU):
    torch_rng = torch.Generator().manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        activation(),
        nn.Conv2d(4, 5, 3, stride=2, padding=1),
        activation(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(5 * 2 * 2, 6),
        activation(),
        nn.Linear(6, n_classes),
    )
    return randomised(net, torch_rng)


class SmallResNet(nn.Module):
    """Functional ReLUs, batch norm, a plain and a strided block joined by skip sums, and a mean."""

    def __init__(self, n_classes=4):
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(4)
        self.first = nn.Conv2d(4, 4, 3, padding=1)
        self.first_norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 6, 3, stride=2, padding=1)
        self.second_norm = nn.BatchNorm2d(6)
        self.shortcut = nn.Conv2d(4, 6, 1, stride=2)
        self.last = nn.Identity()
        self.head = nn.Linear(6, n_classes)

    def forward(self, images):
        stem = F.relu(self.stem_norm(self.stem(images)))
        inner = F.relu(self.first_norm(self.first(stem)) + stem)
        outer = self.second_norm(self.second(inner))
        outer += self.shortcut(inner)
        return self.head(self.last(F.relu(outer)).mean((2, 3)))


def small_resnet(seed, n_classes=4):
    return randomised(SmallResNet(n_classes), torch.Generator().manual_seed(seed))


def randomised(net, rng):
    """Weights, and the statistics of batch norm, drawn from the given source; float64, eval mode."""
    net = net.double().eval()
    with torch.no_grad():
        for name, tensor in [*net.named_parameters(), *net.named_buffers()]:
            if tensor.is_floating_point():
                noise = torch.randn(tensor.shape, generator=rng, dtype=torch.float64)
                scale = 0.2 if tensor.ndim < 2 else 1.5 / tensor[0].numel() ** 0.5
                positive = "running_var" in name or ("norm" in name and name.endswith("weight"))
                tensor.copy_(1 + 0.3 * noise.tanh() if positive else scale * noise)
    return net


def batch(seed, n=3, side=8, n_classes=4):
    rng = torch.Generator().manual_seed(seed)
    images = torch.rand(n, 2, side, side, generator=rng, dtype=torch.float64)
    return images, torch.randint(n_classes, (n,), generator=rng)


@dataclass
class Step:
    kind: str  # input, linear, relu, norm, pool, sum
    inputs: tuple[int, ...]
    values: torch.Tensor
    shape: tuple[int, ...]
    matrix: torch.Tensor | None = None  # weights of a linear step, scale of a norm, choices of a pool


class Tape:
    """The steps of one picture through a network, as flat vectors and dense matrices."""

    def __init__(self, image):
        self.steps = [Step("input", (), image.flatten(), tuple(image.shape))]

    def linear(self, at, function):
        source = self.steps[at]
        count = source.values.numel()
        with torch.no_grad():
            zero = function(torch.zeros(1, *source.shape, dtype=torch.float64))
            basis = function(torch.eye(count, dtype=torch.float64).view(count, *source.shape))
        matrix = (basis - zero).flatten(1).T
        return self._add("linear", (at,), matrix @ source.values + zero.flatten(), zero.shape[1:], matrix)

    def relu(self, at):
        return self._add("relu", (at,), self.steps[at].values.clamp(min=0), self.steps[at].shape)

    def norm(self, at, module):
        source = self.steps[at]
        scale = module.weight / (module.running_var + module.eps).sqrt()
        shift = module.bias - module.running_mean * scale
        per_value = source.values.numel() // len(scale)
        scale, shift = scale.repeat_interleave(per_value), shift.repeat_interleave(per_value)
        return self._add("norm", (at,), scale * source.values + shift, source.shape, scale)

    def pool(self, at):
        source = self.steps[at]
        values, index = F.max_pool2d(source.values.view(1, *source.shape), 2, return_indices=True)
        flat = index[0] + torch.arange(source.shape[0])[:, None, None] * source.shape[1] * source.shape[2]
        choices = F.one_hot(flat.flatten(), source.values.numel()).double()
        return self._add("pool", (at,), values.flatten(), values.shape[1:], choices)

    def sum(self, one, other):
        values = self.steps[one].values + self.steps[other].values
        return self._add("sum", (one, other), values, self.steps[one].shape)

    def _add(self, kind, inputs, values, shape, matrix=None):
        matrix = None if matrix is None else matrix.detach()
        self.steps.append(Step(kind, inputs, values.detach(), tuple(shape), matrix))
        return len(self.steps) - 1

    def signal(self, label, rules, at, seed=None):
        """What comes back to step `at` from a 1 on the label's logit, by a rule for each kind of step."""
        signals = [torch.zeros_like(step.values) for step in self.steps]
        signals[-1][label] = 1
        for i in reversed(range(at + 1, len(self.steps))):
            step = self.steps[i]
            xs = [self.steps[k].values for k in step.inputs]
            rule = rules["top"] if "top" in rules and i == len(self.steps) - 1 else rules[step.kind]
            for k, back in zip(step.inputs, rule(step, signals[i], *xs), strict=True):
                signals[k] = signals[k] + back
        return signals[at].view(self.steps[at].shape)


def trace_vgg(net, image):
    tape, at = Tape(image), 0
    for module in net:
        if isinstance(module, nn.ReLU):
            at = tape.relu(at)
        elif isinstance(module, nn.MaxPool2d):
            at = tape.pool(at)
        else:
            at = tape.linear(at, module)
    return tape, {"2": 3, "3": 4, "4": 5, "1": 2}


def trace_resnet(net, image):
    tape = Tape(image)
    stem = tape.relu(tape.norm(tape.linear(0, net.stem), net.stem_norm))
    inner = tape.relu(tape.sum(tape.norm(tape.linear(stem, net.first), net.first_norm), stem))
    branch = tape.norm(tape.linear(inner, net.second), net.second_norm)
    last = tape.relu(tape.sum(branch, tape.linear(inner, net.shortcut)))
    mean = tape.linear(last, lambda x: x.mean((2, 3)))
    tape.linear(mean, net.head)
    return tape, {"last": last}


def positive_share(matrix, signal, x):
    """p'_j = Σ_i x_j w_ij⁺ / (Σ_k x_k w_ik⁺) p_i, by loops over what comes in and what goes out."""
    weights = matrix.clamp(min=0)
    back = torch.zeros_like(x)
    for i in range(len(signal)):
        total = (weights[i] * x).sum()
        if signal[i] != 0 and total > 0:
            back += x * weights[i] / total * signal[i]
    return back


def sum_share(step, p, a, b):
    a, b = a.clamp(min=0), b.clamp(min=0)
    total = torch.where(a + b > 0, a + b, 1)
    return p * a / total, p * b / total


GRADIENT = {
    "linear": lambda step, p, x: (step.matrix.T @ p,),
    "relu": lambda step, p, x: (p * (x > 0),),
    "norm": lambda step, p, x: (p * step.matrix,),
    "pool": lambda step, p, x: (step.matrix.T @ p,),
    "sum": lambda step, p, a, b: (p, p),
}
GUIDED = GRADIENT | {"relu": lambda step, p, x: (p.clamp(min=0) * (x > 0),)}
DECONVNET = GRADIENT | {"relu": lambda step, p, x: (p.clamp(min=0),)}
EXCITATION = {
    "linear": lambda step, p, x: (positive_share(step.matrix, p, x),),
    "relu": lambda step, p, x: (p,),
    "norm": lambda step, p, x: (p,),
    "pool": lambda step, p, x: (step.matrix.T @ p,),
    "sum": sum_share,
}
CONTRASTIVE = EXCITATION | {
    "top": lambda step, p, x: (positive_share(step.matrix, p, x) - positive_share(-step.matrix, p, x),)
}
