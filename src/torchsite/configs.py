"""Frozen configurations that refuse what they do not know.

A configuration is a frozen dataclass of plain values. `from_mapping` reads one from YAML or JSON data;
an unknown field is an error that names the nearest known one, and a value of the wrong type is an error
that names the field. `name` tells which kind a value of several kinds (`Tagged`) is.
"""

import dataclasses
import math
import reprlib
import types
import typing
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from torchsite.errors import ConfigError, did_you_mean

Config = TypeVar("Config")


class Tagged:
    """The base of dataclasses of several kinds: `class Red(Colour, name="red")` is the kind of that name.

    The base of a family has a table `tags` of its own; a kind enters itself when it is defined.
    """

    tags: ClassVar[dict[str, type[Any]]]
    name: ClassVar[str]

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if not name:
            return
        known = cls.tags.get(name)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise ConfigError(f"the name {name!r} is taken by {known.__qualname__}: choose another")
        cls.name = name
        cls.tags[name] = cls


def from_mapping(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """Build the dataclass `kind` from plain data; unknown fields and wrong types are errors."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{kind.__name__}: expected a mapping of fields, got {type(values).__name__}")
    if issubclass(kind, Tagged) and "name" not in vars(kind):
        return _from_tagged(kind, values)
    hints = _fields(kind)
    for name in values:
        if name not in hints:
            raise ConfigError(f"{kind.__name__} has no field {name!r}: {did_you_mean(str(name), hints)}")
    known = {name: _convert(value, hints[name], f"{kind.__name__}.{name}") for name, value in values.items()}
    try:
        return kind(**known)
    except TypeError as error:
        raise ConfigError(f"{kind.__name__}: {error}") from error


def to_mapping(config: Any) -> dict[str, Any]:
    """Plain data that `from_mapping` reads back to an equal value."""
    tag = {"name": config.name} if isinstance(config, Tagged) else {}
    return tag | {field.name: _plain(getattr(config, field.name)) for field in dataclasses.fields(config)}


def check_bounds(config: Any, interval: str, *names: str) -> None:
    """Raise a `ConfigError` unless these fields lie in an interval, such as "(0, 1]"; None lies in any.

    Of a field of several values all must, and there must be one.
    """
    low, high = (float(end.replace("∞", "inf")) for end in interval[1:-1].split(","))
    least = f"{'at least' if interval[0] == '[' else 'more than'} {low:g}"
    ends = {low} if interval[0] == "[" else set()
    ends |= {high} if interval[-1] == "]" else set()
    for name in names:
        given = getattr(config, name)
        values = given if isinstance(given, tuple) else (given,)
        if not values or not all(v is None or low < v < high or v in ends for v in values):
            where = f"{config.name}.{name}" if isinstance(config, Tagged) else name
            expected = least if math.isinf(high) else f"a number in {interval}"
            raise ConfigError(f"{where}: expected {expected}, got {given}")


def _fields(kind: type[Any]) -> dict[str, Any]:
    """The annotated type of each field."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _from_tagged(family: type[Config], values: Mapping[str, Any]) -> Config:
    """A value of the kind in the field `name`."""
    tags: dict[str, type[Config]] = family.tags  # type: ignore[attr-defined]
    name = values.get("name")
    if not isinstance(name, str) or name not in tags:
        hint = did_you_mean(str(name), tags)
        raise ConfigError(f"{family.__name__}: expected the name of one, got {reprlib.repr(name)}: {hint}")
    return from_mapping(tags[name], {key: value for key, value in values.items() if key != "name"})


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_mapping(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _convert(value: Any, hint: Any, where: str) -> Any:
    """`value` as the annotated type: lists become tuples, whole floats stay exact, nothing is guessed."""
    origin = typing.get_origin(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return value if isinstance(value, hint) else from_mapping(hint, value)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(value, typing.get_args(hint), where)
    if origin is typing.Literal:
        if value not in typing.get_args(hint):
            raise ConfigError(f"{where}: expected one of {typing.get_args(hint)}, got {reprlib.repr(value)}")
        return value
    if origin is tuple:
        return _convert_tuple(value, typing.get_args(hint), where)
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where}: expected a mapping, got {reprlib.repr(value)}")
        return dict(value)
    if hint is Any:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, bool):
        raise ConfigError(f"{where}: expected int, got {reprlib.repr(value)}")
    if not isinstance(value, hint):
        raise ConfigError(
            f"{where}: expected {hint.__name__}, got {reprlib.repr(value)} ({type(value).__name__})"
        )
    return value


def _convert_union(value: Any, hints: tuple[Any, ...], where: str) -> Any:
    if value is None and type(None) in hints:
        return None
    errors = []
    for hint in hints:
        if hint is type(None):
            continue
        try:
            return _convert(value, hint, where)
        except ConfigError as error:
            errors.append(str(error))
    raise ConfigError("; ".join(errors))


def _convert_tuple(value: Any, hints: tuple[Any, ...], where: str) -> Any:
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{where}: expected a list, got {reprlib.repr(value)}")
    if len(hints) == 2 and hints[1] is Ellipsis:
        return tuple(_convert(item, hints[0], where) for item in value)
    if len(value) != len(hints):
        raise ConfigError(f"{where}: expected {len(hints)} values, got {len(value)}: {reprlib.repr(value)}")
    return tuple(_convert(item, hint, where) for item, hint in zip(value, hints, strict=True))
