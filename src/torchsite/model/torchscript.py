"""TorchScript files as programs: torch reads the archive, its graph is translated step by step, never run.

torch's reader of these files is in C++; it builds tensors and TorchScript's own types and calls no Python. A
TorchScript program may do more than compute, so it is not run either: it is frozen, which leaves a graph of
operators and constants, and each operator that the logits need must be one that programs may have.
"""

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchsite.errors import NotApplicableError, WeightsError
from torchsite.model.program_building import in_place_aside, with_weights
from torchsite.model.programs import INPUT, Answers, Step

STATISTICS = ("running_mean", "running_var")


def read_torchscript(path: Path) -> Answers:
    """The network in a file of `torch.jit.save`; its weights can learn, the statistics of its norms stay."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather have us use torch.export
        try:
            module = torch.jit.load(str(path), map_location="cpu").eval()
            graph = torch.jit.freeze(module, optimize_numerics=False).graph
        except Exception as error:  # damaged files make torch fail in many ways
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise WeightsError(f"{path} cannot be read as TorchScript ({reason}): save it again") from error
    reading = _Reading(graph)
    for node in graph.nodes():
        reading.read(node)
    return reading.finished(graph)


class _Reading:
    """A graph on its way to a program; what cannot be translated matters only if the logits need it."""

    def __init__(self, graph: Any) -> None:
        self.values: dict[str, Any] = {}  # by TorchScript's names: constants, and references to steps
        self.unknown: dict[str, str] = {}  # what was answered by something that is not known here
        self.weights: dict[str, Tensor] = {}
        self.fixed: set[str] = set()
        self.steps: list[Step] = []
        self.names: dict[str, str] = {}
        inputs = [value for value in graph.inputs() if str(value.type()) == "Tensor"]
        if len(inputs) != 1:
            raise NotApplicableError(
                f"a classifier takes one batch of pictures, this takes {len(inputs)} tensors"
            )
        self.values[inputs[0].debugName()] = {"value": INPUT}

    def read(self, node: Any) -> None:
        """One node more."""
        kind, names = node.kind(), [value.debugName() for value in node.outputs()]
        unknown = [self.unknown[v.debugName()] for v in node.inputs() if v.debugName() in self.unknown]
        if unknown:
            self.unknown |= dict.fromkeys(names, unknown[0])
        elif kind == "prim::Constant":
            self.values[names[0]] = self._constant(node.output())
        elif kind in ("prim::ListConstruct", "prim::TupleConstruct"):
            self.values[names[0]] = tuple(map(self._get, node.inputs()))
        elif kind.startswith("aten::"):
            try:
                self._call(node)
            except NotApplicableError:
                self.unknown |= dict.fromkeys(names, kind)
        else:  # assertions answer nothing, so that nothing is lost with them
            self.unknown |= dict.fromkeys(names, kind)

    def finished(self, graph: Any) -> Answers:
        """The classifier, if all that its logits need is known."""
        (logits,) = graph.outputs()
        if logits.debugName() in self.unknown:
            raise NotApplicableError(
                f"a TorchScript network whose logits need {self.unknown[logits.debugName()]} cannot be "
                "translated: save it with torch.export.save, or name the code that builds it"
            )
        learning = {
            name for name, tensor in self.weights.items() if tensor.is_floating_point() and tensor.ndim
        }
        output = self._get(logits)["value"]
        return with_weights(self.steps, self.weights, learning - self.fixed, [output])

    def _call(self, node: Any) -> None:
        schema = torch._C.parse_schema(node.schema())
        op = f"{schema.name.replace('::', '.')}.{schema.overload_name or 'default'}"
        given = {
            argument.name: self._get(value)
            for argument, value in zip(schema.arguments, node.inputs(), strict=True)
        }
        self.fixed |= {given[name]["value"] for name in STATISTICS if given.get(name) is not None}
        answers = [f"s{len(self.steps)}_{i}" for i, _ in enumerate(node.outputs())]
        self.steps += in_place_aside(op, given, (), answers, self.names)
        for value, name in zip(node.outputs(), answers, strict=True):
            self.values[value.debugName()] = {"value": name}

    def _get(self, value: Any) -> Any:
        found = self.values[value.debugName()]
        if isinstance(found, dict):
            return {"value": self.names.get(found["value"], found["value"])}
        return found

    def _constant(self, value: Any) -> Any:
        found = value.toIValue()
        if isinstance(found, Tensor):
            name = f"w{len(self.weights)}"
            self.weights[name] = found
            return {"value": name}
        return found if isinstance(found, bool | int | float | str | list) else None
