"""How many pictures a report looks at follows from the time that training has left."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from torchsite.autotrain.prepare import PER_COMPARED, PER_PROBED, PER_VALIDATION, affordable

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
