"""What every reader of foreign networks needs: arguments in order, nothing in place, weights put in."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from torchsite.model.programs import GETITEM, Answers, Program, Step, WeightSpec, operator


def with_weights(
    steps: list[Step], weights: Mapping[str, Tensor], learning: set[str], outputs: list[str]
) -> Answers:
    """A classifier that runs the steps with these weights; those that no step reads are left out."""
    specs = {
        name: WeightSpec(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), name in learning)
        for name, tensor in weights.items()
    }
    program = Program(tuple(steps), specs, tuple(outputs)).needed(outputs).checked()
    return Answers.of(program, weights)


def in_order(found: Any, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """All arguments in the order of an operator's schema, with defaults between those that are given."""
    wanted = found._schema.arguments
    given = {argument.name: value for argument, value in zip(wanted, args, strict=False)} | dict(named)
    last = max((i for i, argument in enumerate(wanted) if argument.name in given), default=-1)
    return [given.get(argument.name, argument.default_value) for argument in wanted[: last + 1]]


def in_place_aside(
    op: str, given: Mapping[str, Any], layers: tuple[str, ...], answers: list[str], names: dict[str, str]
) -> list[Step]:
    """The steps of one call, by named arguments; one that works in place is replaced by one that does not.

    What was changed in place is known by the name of the answer from then on (`names`). An operator that
    answers several tensors gives one step more for each of them.
    """
    base, _, overload = op.rpartition(".")
    if op == GETITEM:
        return [Step(answers[0], op, tuple(given.values()), layers)]
    if base.endswith("_") and not base.endswith("__"):
        op = f"{base.removesuffix('_')}.{overload}"
        changed = next(iter(given.values()))
        names |= {name: answers[0] for name in [*names, changed["value"]] if _is(name, changed, names)}
    args = tuple(in_order(operator(op), [], given))
    if len(answers) == 1:
        return [Step(answers[0], op, args, layers)]
    whole = f"{answers[0]}_all"
    parts = [Step(name, GETITEM, ({"value": whole}, i), layers) for i, name in enumerate(answers) if name]
    return [Step(whole, op, args, layers), *parts]


def _is(name: str, changed: Mapping[str, Any], names: Mapping[str, str]) -> bool:
    """Whether a name stands for the value that was changed."""
    return names.get(name, name) == changed["value"]
