import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchsite import errors
from torchsite.errors import ConfigError, ShapeError, TorchsiteError, did_you_mean

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]


@pytest.mark.parametrize("kind", KINDS)
def test_one_except_catches_all(kind):
    with pytest.raises(TorchsiteError, match="what to do"):
        raise kind("what was expected, what came, what to do")


@pytest.mark.parametrize("kind", [ShapeError, ConfigError])
def test_bad_values_are_value_errors(kind):
    assert issubclass(kind, ValueError)


def test_the_nearest_name_comes_first():
    assert did_you_mean("batchsize", ["epochs", "batch_size"]) == (
        "did you mean 'batch_size'? known: batch_size, epochs"
    )


def test_nothing_near_lists_what_is_known():
    assert did_you_mean("zzz", ["b", "a"]) == "known: a, b"


@given(st.lists(st.text("abcdef_", min_size=1), min_size=1, unique=True), st.data())
def test_a_known_name_is_its_own_nearest(names, data):
    name = data.draw(st.sampled_from(names))
    assert did_you_mean(name, names).startswith(f"did you mean {name!r}? ")
