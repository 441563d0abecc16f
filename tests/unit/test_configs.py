import json
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchsite.configs import from_mapping, to_mapping
from torchsite.errors import ConfigError


@dataclass(frozen=True)
class Inner:
    depth: int = 3
    rates: tuple[float, ...] = ()


@dataclass(frozen=True)
class Outer:
    name: str
    rate: float = 0.5
    on: bool = True
    kind: Literal["a", "b"] = "a"
    size: tuple[int, int] = (1, 2)
    maybe: int | None = None
    either: int | str = 0
    inner: Inner = Inner()
    options: dict[str, Any] = field(default_factory=dict)


inners = st.builds(Inner, st.integers(), st.lists(st.floats(allow_nan=False)).map(tuple))
outers = st.builds(
    Outer,
    st.text(),
    st.floats(allow_nan=False),
    st.booleans(),
    st.sampled_from(["a", "b"]),
    st.tuples(st.integers(), st.integers()),
    st.none() | st.integers(),
    st.integers() | st.text(),
    inners,
    st.dictionaries(st.text(), st.integers() | st.text() | st.booleans()),
)


@given(outers)
def test_configurations_survive_json(config):
    assert from_mapping(Outer, json.loads(json.dumps(to_mapping(config)))) == config


def test_what_is_left_out_keeps_its_default():
    assert from_mapping(Outer, {"name": "x"}) == Outer("x")


def test_whole_numbers_may_stand_for_floats_but_not_the_reverse():
    found = from_mapping(Outer, {"name": "x", "rate": 2})
    assert found.rate == 2.0
    assert isinstance(found.rate, float)
    with pytest.raises(ConfigError, match=r"Outer\.maybe: .* int, .*2\.0 \(float\)"):
        from_mapping(Outer, {"name": "x", "maybe": 2.0})


def test_values_already_of_the_right_type_are_kept():
    inner = Inner(5)
    assert from_mapping(Outer, {"name": "x", "inner": inner}).inner is inner


def test_a_typo_is_an_error_that_names_the_nearest_field():
    with pytest.raises(ConfigError, match=r"Outer .*'rat': .*'rate'"):
        from_mapping(Outer, {"name": "x", "rat": 1})
    with pytest.raises(ConfigError, match=r"Inner .*'dept': .*'depth'"):
        from_mapping(Outer, {"name": "x", "inner": {"dept": 1}})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "Outer: .*missing .*'name'"),
        ({"name": 3}, "Outer.name: "),
        ({"name": "x", "rate": "fast"}, "Outer.rate: "),
        ({"name": "x", "rate": True}, "Outer.rate: "),
        ({"name": "x", "on": 1}, "Outer.on: "),
        ({"name": "x", "kind": "c"}, r"Outer.kind: expected one of \('a', 'b'\), got 'c'"),
        ({"name": "x", "size": [1]}, "Outer.size: "),
        ({"name": "x", "size": 1}, "Outer.size: "),
        ({"name": "x", "size": [1, True]}, "Outer.size: "),
        ({"name": "x", "maybe": "none"}, "Outer.maybe: "),
        ({"name": "x", "either": 1.5}, "Outer.either: .*int.*; Outer.either: .*str"),
        ({"name": "x", "inner": 3}, "Inner: "),
        ({"name": "x", "inner": {"rates": ["a"]}}, "Inner.rates: "),
        ({"name": "x", "options": [1]}, "Outer.options: "),
        ([("name", "x")], "Outer: "),
    ],
)
def test_wrong_values_are_errors_that_name_the_field(values, message):
    with pytest.raises(ConfigError, match=message):
        from_mapping(Outer, values)
