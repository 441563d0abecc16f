"""Replace the backward rule of chosen operations while a model runs, wherever it calls them.

Hooks see modules only; a model that calls `F.relu` or adds a skip connection with `+` hides half of its
operations from them. A `TorchFunctionMode` sees every torch function, from a module or not. `Interception`
hands the calls named in a table of rules to `Replaced`, an autograd function that computes the same output
and sends a different signal back. All other calls run as they are, and leave a note of the function and the
module on their node of the autograd graph, so that an audit of the graph can name what it refuses. Functions
that no mode sees (custom autograd functions, scripted or compiled code) leave nodes without a note: the audit
finds those too. Nothing is taken on trust.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from inspect import Signature, signature
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node, get_gradient_edge
from torch.overrides import TorchFunctionMode

from torchsite.errors import NotApplicableError

NOTE = "torchsite"


@dataclass(frozen=True)
class Call:
    """One call of a torch function; `slots` say which arguments depend on the pictures."""

    function: Callable[..., Any]
    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    where: str
    slots: tuple[int | str, ...] = field(default=())

    @property
    def in_place(self) -> bool:
        """Whether the call overwrites its first argument."""
        return self.name.endswith("_") or bool(self.argument("inplace", default=False))

    @property
    def values(self) -> tuple[Tensor, ...]:
        """The arguments that depend on the pictures."""
        return tuple(self.args[slot] if isinstance(slot, int) else self.kwargs[slot] for slot in self.slots)

    def argument(self, name: str, position: int | None = None, default: Any = None) -> Any:
        """An argument by name, or by position where the function has no signature to ask."""
        if name in self.kwargs:
            return self.kwargs[name]
        known = _parameters(self.function)
        if known is not None and name in known:
            position = list(known).index(name)
            default = known[name].default
        if position is not None and position < len(self.args):
            return self.args[position]
        return default

    def having(self, name: str, position: int, value: Any) -> "Call":
        """The same call with one argument exchanged."""
        if position < len(self.args):
            args = (*self.args[:position], value, *self.args[position + 1 :])
            return replace(self, args=args)
        return replace(self, kwargs={**self.kwargs, name: value})

    def run(self, *values: Tensor) -> Tensor:
        """The call with other tensors in its slots; never overwrites them."""
        call = self.filled(values)
        args = (call.args[0].clone(), *call.args[1:]) if self.in_place else call.args
        result: Tensor = self.function(*args, **call.kwargs)
        return result

    def filled(self, values: Sequence[Tensor | None]) -> "Call":
        """The same call with other tensors, or none, in its slots."""
        args, kwargs = list(self.args), dict(self.kwargs)
        for slot, value in zip(self.slots, values, strict=True):
            if isinstance(slot, int):
                args[slot] = value
            else:
                kwargs[slot] = value
        return replace(self, args=tuple(args), kwargs=kwargs)

    def refusal(self, reason: str) -> NotApplicableError:
        """The error that names this call and its module."""
        return NotApplicableError(f"{self.where}: {self.name}(): {reason}")


Rule = Callable[[Call, Tensor], tuple[Tensor, ...]]
"""From a call and the signal at its output to the signal at each of its slots."""

Choose = Callable[[Call], Rule | None]
"""The rule for a call, or None to leave the call as it is."""


class Replaced(torch.autograd.Function):
    """An operation whose output is its own and whose backward signal is a rule's."""

    @staticmethod
    def forward(ctx: Any, call: Call, rule: Rule, *values: Tensor) -> Tensor:
        """The output of the call itself."""
        ctx.call = call.filled([None] * len(values))  # a graph that held its own tensors would never be freed
        ctx.rule = rule
        ctx.save_for_backward(*values)
        output = call.run(*values)
        return output.view_as(output) if any(output is value for value in values) else output

    @staticmethod
    def backward(ctx: Any, signal: Tensor) -> tuple[Tensor | None, ...]:
        """The signal that the rule sends back."""
        call = ctx.call.filled([value.detach() for value in ctx.saved_tensors])
        return (None, None, *ctx.rule(call, signal))


class Interception(TorchFunctionMode):
    """While active, calls on what depends on the pictures follow the table of rules."""

    def __init__(self, rules: Mapping[str, Choose]) -> None:
        super().__init__()
        self._rules = rules
        self._path: list[str] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", str(func))
        choose = self._rules.get(name)
        slots = _slots(args, kwargs) if choose is not None else ()
        if choose is None or not slots:
            return self._left_alone(func, name, args, kwargs)
        call = Call(func, name, args, kwargs, self._where(), slots)
        rule = choose(call)
        if rule is None:
            return self._left_alone(func, name, args, kwargs)
        if call.in_place:  # the rule will want to see what is about to be overwritten
            values = [value.clone() for value in call.values]
            return args[0].copy_(Replaced.apply(call, rule, *values))  # type: ignore[no-untyped-call]
        return Replaced.apply(call, rule, *call.values)  # type: ignore[no-untyped-call]

    @contextmanager
    def following(self, model: nn.Module) -> Iterator[None]:
        """Be active during a model's forward pass, knowing at any time which module is running."""
        handles = []
        try:
            for name, module in model.named_modules():
                label = (
                    f"{name!r} ({type(module).__name__})" if name else f"the model ({type(module).__name__})"
                )
                enter = lambda *_, label=label: self._path.append(label)  # noqa: E731
                leave = lambda *_: (self._path.pop(), None)[1]  # noqa: E731
                handles.append(module.register_forward_pre_hook(enter))
                handles.append(module.register_forward_hook(leave))
            with self:
                yield
        finally:
            for handle in handles:
                handle.remove()

    def _where(self) -> str:
        return self._path[-1] if self._path else "the model"

    def _left_alone(self, func: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Run the call as it is, and leave a note on every node that it adds to the graph."""
        before = {tensor.grad_fn for tensor in _tensors((args, kwargs))}
        output = func(*args, **kwargs)
        added = [tensor.grad_fn for tensor in _tensors((output,))]
        while added:
            node = added.pop()
            if node is not None and node not in before and not is_replaced(node) and NOTE not in _notes(node):
                _notes(node)[NOTE] = (name, self._where())
                added.extend(child for child, _ in node.next_functions)
        return output


def audit(nodes: Iterable[Node], allowed: Callable[[str, str | None], bool], method: str) -> None:
    """Refuse the first node that is neither a rule of ours nor allowed by (kind, function that was noted)."""
    for node in nodes:
        if is_replaced(node):
            continue
        function, where = _notes(node).get(NOTE, (None, "a part of the model that hides its operations"))
        if _is_custom(node):
            function = None
        elif allowed(kind_of(node), function):
            continue
        raise NotApplicableError(f"{where}: {method} has no rule for {function or node.name()}()")


def nodes_between(output: Tensor, source: Tensor) -> list[Node]:
    """The nodes of the autograd graph on some way from `output` back to `source`, both ends' own excluded."""
    start, goal = (get_gradient_edge(end).node for end in (output, source))
    users: dict[Node, list[Node]] = {start: []}
    queue = [start]
    while queue:
        node = queue.pop()
        for child, _ in node.next_functions if node is not goal else ():
            if child is not None:
                if child not in users:
                    queue.append(child)
                users.setdefault(child, []).append(node)
    found: dict[Node, None] = {}
    queue = list(users.get(goal, []))
    while queue:
        node = queue.pop()
        if node not in found:
            found[node] = None
            queue.extend(users[node])
    return list(found)


def is_replaced(node: Node) -> bool:
    """Whether a node of the graph is one of our rules."""
    return getattr(node, "_forward_cls", None) is Replaced


def kind_of(node: Node) -> str:
    """The name of a built-in node without its tail: `ReluBackward0` is `Relu`."""
    name = node.name().rpartition("::")[2].rstrip("0123456789")
    return name.removesuffix("Backwards").removesuffix("Backward")


def refuse_opaque(model: nn.Module, method: str) -> None:
    """Scripted modules run outside Python, where no operation can be seen."""
    for name, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            raise NotApplicableError(f"{name or 'the model'!r} is scripted: {method} cannot see inside it")


def _notes(node: Node) -> dict[str, tuple[str, str]]:
    """The dictionary that every node carries; torch annotates it as a method, and it is a property."""
    return cast(dict[str, tuple[str, str]], node.metadata)


def _is_custom(node: Node) -> bool:
    return isinstance(node, torch.autograd.function.BackwardCFunction) or "Graph" in node.name()


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among arguments or outputs, also inside of lists and dictionaries."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from _tensors(value)
        elif isinstance(value, dict):
            yield from _tensors(value.values())


def _slots(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[int | str, ...]:
    arguments: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    return tuple(slot for slot, value in arguments if isinstance(value, Tensor) and value.requires_grad)


@lru_cache(maxsize=256)
def _parameters(function: Callable[..., Any]) -> Mapping[str, Any] | None:
    """The parameters of a function written in Python; built-in ones have none to ask."""
    try:
        found: Signature = signature(function)
    except ValueError:
        return None
    return found.parameters
