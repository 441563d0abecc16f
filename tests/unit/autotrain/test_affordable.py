"""How many pictures a report looks at follows from the time that training has left."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from tagged import Colours, coloured
from torchsite.autotrain.prepare import PER_COMPARED, PER_PROBED, PER_VALIDATION, affordable, audit_prepared

N = 400


@dataclass
class Left:
    """As much of a prepared training as counts here: a validation of all pictures takes this long."""

    seconds_left: float
    validation: float = 20.0

    def __post_init__(self):
        self.fitted = SimpleNamespace(validation_seconds=self.validation)
        training = SimpleNamespace(n_validation=N)
        self.plan = SimpleNamespace(recipe=SimpleNamespace(training=training))
        self.test = range(N)


def afforded_in(left):
    return affordable(left, left.fitted)


def seconds(afforded, validation):
    """What the examination takes if it goes on as the validation went."""
    asked = validation / N / PER_VALIDATION
    passes = (PER_VALIDATION, PER_PROBED, PER_COMPARED)
    return asked * sum(n * each for n, each in zip(afforded, passes, strict=True))


@pytest.mark.parametrize("left", [60.0, 120.0, 300.0])
def test_half_of_the_time_is_left_for_what_cannot_be_foreseen(left):
    afforded = afforded_in(Left(left))
    assert 0.1 * left < seconds(afforded, 20.0) <= 0.5 * left


def test_less_time_shows_fewer_pictures_but_never_none():
    many, few = (afforded_in(Left(left)) for left in (400.0, 40.0))
    assert all(a > b > 0 for a, b in zip(many, few, strict=True))
    late = afforded_in(Left(-60.0, validation=400.0))
    assert late == (20, 10, 8)


def audited(validation, n=60, labels=3):
    """The audit of a model that trusts a tag, as its report would have it."""
    data, _ = coloured(n)
    data = replace(data, labels=data.labels % labels)
    left = Left(60.0)
    left.test = data
    return audit_prepared(left, SimpleNamespace(model=Colours(), validation_seconds=validation))


def test_an_audit_is_made_where_seconds_suffice_and_looks_at_as_many_as_they_allow():
    fast, slow = audited(0.1), audited(1.2)
    assert fast.result.config["n_probed"] > slow.result.config["n_probed"] == 8
    assert fast.result.config["method"] == "grad_cam"
    assert audited(60.0) is None


def test_there_is_no_audit_of_too_few_pictures():
    assert audited(0.1, n=9) is None
