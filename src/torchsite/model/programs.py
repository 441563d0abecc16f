"""A network as plain data: steps of torch's own operators, and the shapes of its weights.

A network that was trained elsewhere must come back without the code that built it, and without running any
file's code. A program is a list of steps, each an operator of torch with its arguments, that stands as JSON
in `config.json`; the weights stand beside it as safetensors. Only operators that compute tensors from tensors
are known: those of torch's core set and the composite ones below. None of them touches files or the system.

    {"op": "aten.conv2d.default", "args": [{"value": "input"}, {"value": "p_conv1_weight"}, null, [2, 2]],
     "name": "conv2d"}
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from torchsite.errors import NotApplicableError, WeightsError
from torchsite.shapes import Features, Images

INPUT = "input"
GETITEM = "getitem"
# Operators that are made of core ones; the files of torch.export and TorchScript are full of them.
COMPOSITE = frozenset(
    {
        "_convolution",
        "adaptive_avg_pool2d",
        "adaptive_max_pool2d",
        "alpha_dropout",
        "batch_norm",
        "broadcast_tensors",
        "channel_shuffle",
        "chunk",
        "clamp",
        "clamp_max",
        "clamp_min",
        "concat",
        "contiguous",
        "conv2d",
        "detach",
        "dropout",
        "elu",
        "feature_dropout",
        "flatten",
        "gelu",
        "group_norm",
        "hardsigmoid",
        "hardswish",
        "hardtanh",
        "instance_norm",
        "layer_norm",
        "leaky_relu",
        "linear",
        "matmul",
        "max_pool2d",
        "mish",
        "movedim",
        "narrow",
        "ones_like",
        "pad",
        "pixel_shuffle",
        "prelu",
        "relu",
        "relu6",
        "reshape",
        "scaled_dot_product_attention",
        "selu",
        "silu",
        "softmax",
        "softplus",
        "split",
        "square",
        "stack",
        "sum",
        "t",
        "to",
        "transpose",
        "type_as",
        "unflatten",
        "unsqueeze",
        "upsample_bilinear2d",
        "upsample_nearest2d",
        "zeros_like",
    }
)
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64)
} | {"bool": torch.bool}


@dataclass(frozen=True)
class Step:
    """One operator and what it is given; `layers` are the modules that it was a part of, where known."""

    name: str
    op: str
    args: tuple[Any, ...]
    layers: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The values that it needs."""
        return tuple(_values(self.args))


@dataclass(frozen=True)
class WeightSpec:
    """The shape and type of a weight, and whether it can learn."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    learns: bool = True


@dataclass(frozen=True)
class Program:
    """Steps in the order they run, the weights they read, and which values are answered."""

    steps: tuple[Step, ...]
    weights: Mapping[str, WeightSpec]
    outputs: tuple[str, ...]

    def needed(self, outputs: Sequence[str]) -> "Program":
        """The part of the program that answers other values; the rest is gone."""
        wanted, steps = set(outputs), []
        for step in reversed(self.steps):
            if step.name in wanted:
                steps.append(step)
                wanted.update(step.reads)
        weights = {name: spec for name, spec in self.weights.items() if name in wanted}
        return Program(tuple(reversed(steps)), weights, tuple(outputs))

    def plain(self) -> dict[str, Any]:
        """As JSON has it; the names of layers are left out, since nothing can be cut here any more."""
        return {
            "steps": [{"name": step.name, "op": step.op, "args": list(step.args)} for step in self.steps],
            "weights": {
                name: {"shape": list(spec.shape), "dtype": spec.dtype, "learns": spec.learns}
                for name, spec in self.weights.items()
            },
            "outputs": list(self.outputs),
        }

    @classmethod
    def from_plain(cls, values: Any) -> "Program":
        """Read and check; what is no program, or holds an operator that is not known, is an error."""
        try:
            steps = tuple(
                Step(str(step["name"]), str(step["op"]), tuple(step["args"])) for step in values["steps"]
            )
            weights = {
                str(name): WeightSpec(
                    tuple(map(int, spec["shape"])), str(spec["dtype"]), bool(spec["learns"])
                )
                for name, spec in values["weights"].items()
            }
            program = cls(steps, weights, tuple(map(str, values["outputs"])))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise WeightsError(f"program: expected steps, weights and outputs ({error!r})") from error
        return program.checked()

    def checked(self) -> "Program":
        """Itself; every operator is known and every value is there before it is read."""
        there = {INPUT, *self.weights}
        for step in self.steps:
            operator(step.op)
            missing = set(step.reads) - there
            if missing:
                raise WeightsError(f"program: step {step.name!r} reads {sorted(missing)}, not there yet")
            there.add(step.name)
        if not self.outputs or set(self.outputs) - there:
            raise WeightsError(f"program: expected outputs among its values, got {list(self.outputs)}")
        for name, spec in self.weights.items():
            if spec.dtype not in DTYPES or not name.isidentifier():
                raise WeightsError(f"program: no weight can be called {name!r} and be of {spec.dtype!r}")
        return self


class ProgramModule(nn.Module):
    """Runs a program: pictures in, a list of its outputs out; `load_state_dict` brings the weights."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = replace(program, steps=tuple(replace(step, layers=()) for step in program.steps))
        self._last = last_reads(program)
        for name, spec in program.weights.items():
            tensor = torch.zeros(spec.shape, dtype=DTYPES[spec.dtype])
            if spec.learns:
                self.register_parameter(name, nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)

    def forward(self, images: Images) -> list[Tensor]:
        """Step by step; what no later step reads is let go."""
        values: dict[str, Any] = {name: getattr(self, name) for name in self.program.weights}
        values[INPUT] = images
        for number, step in enumerate(self.program.steps):
            values[step.name] = run_step(step, values)
            for name in step.reads:
                if self._last[name] == number and name not in self.program.outputs:
                    values.pop(name, None)
        return [values[name] for name in self.program.outputs]


class Answers(nn.Module):
    """A program with one output as a classifier: pictures in, logits out.

    `image_shape` is what it was saved with, if its file says so.
    """

    image_shape: tuple[int, int, int] | None = None

    def __init__(self, body: ProgramModule, steps: tuple[Step, ...] = ()) -> None:
        super().__init__()
        self.body, self.steps = body, steps or body.program.steps

    @classmethod
    def of(cls, program: Program, weights: Mapping[str, Tensor]) -> "Answers":
        """The program with its weights, which are copied; `program` remembers the names of its layers."""
        body = ProgramModule(program)
        body.load_state_dict({name: weights[name].detach() for name in program.weights})
        return cls(body.eval(), program.steps)

    @property
    def program(self) -> Program:
        """What is run, with the names of layers."""
        return replace(self.body.program, steps=self.steps)

    def forward(self, images: Images) -> Features:
        """The only output."""
        (only,) = self.body(images)
        return only


def run_step(step: Step, values: Mapping[str, Any]) -> Any:
    """What the operator answers."""
    found, args = operator(step.op), _filled(step.args, values)
    n = n_positional(step.op)
    names = [argument.name for argument in found._schema.arguments[n : len(args)]] if n < len(args) else []
    return found(*args[:n], **dict(zip(names, args[n:], strict=True)))


def last_reads(program: Program) -> dict[str, int]:
    """The number of the last step that reads each value."""
    return {name: number for number, step in enumerate(program.steps) for name in step.reads}


@functools.lru_cache(maxsize=1024)
def n_positional(name: str) -> int:
    """How many arguments of an operator are given by place; the others have names."""
    schema = getattr(operator(name), "_schema", None)
    return 2 if schema is None else sum(not argument.kwarg_only for argument in schema.arguments)


@functools.lru_cache(maxsize=1024)
def operator(name: str) -> Any:
    """An operator by its full name, if it is one that a program may have."""
    if name == GETITEM:
        return _getitem
    space, _, rest = name.partition(".")
    base, _, overload = rest.partition(".")
    packet = getattr(torch.ops.aten, base, None) if space == "aten" and base.isidentifier() else None
    found = getattr(packet, overload or "default", None) if packet is not None else None
    if not isinstance(found, torch._ops.OpOverload) or not _may_run(found, base):
        raise NotApplicableError(
            f"operator {name!r} is not one that a network's front may have: only torch's on tensors "
            "are; cut before it with `layer`, or build the model from its code"
        )
    return found


def _may_run(found: Any, base: str) -> bool:
    return torch.Tag.core in found.tags or base in COMPOSITE


def _getitem(values: Sequence[Any], index: int) -> Any:
    return values[index]


def _values(args: Any) -> Iterable[str]:
    """The names of all values among arguments."""
    if isinstance(args, Mapping):
        if "value" in args:
            yield str(args["value"])
    elif isinstance(args, list | tuple):
        for arg in args:
            yield from _values(arg)


def _filled(args: Any, values: Mapping[str, Any]) -> Any:
    """Arguments with their values put in."""
    if isinstance(args, Mapping):
        if "value" in args:
            return values[str(args["value"])]
        if "dtype" in args and args["dtype"] in DTYPES:
            return DTYPES[args["dtype"]]
        if "float" in args:
            return float(args["float"])
        raise WeightsError(f"program: expected a value, a dtype or a number, got {dict(args)}")
    if isinstance(args, list | tuple):
        return [_filled(arg, values) for arg in args]
    return args
