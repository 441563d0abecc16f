"""A training with a clock ends at the end of its schedule, however slow the machine is."""

import pytest

from torchsite.errors import ConfigError
from torchsite.training import Callback, checkpoints, fit
from torchsite.training.optimisers import schedule
from training_makers import FakeClock, digest, digits, equivariance, make_config, make_site, transformation

SECONDS = 24.0
EPOCHS = 100


class Notes(Callback):
    """What the run did at each step; may break off after some of them."""

    def __init__(self, stop_after=None):
        self.rates, self.positions, self.losses, self.validations = [], [], [], []
        self.stop_after = stop_after

    def step_begins(self, run, batch):
        self.positions.append(run.position / run.n_steps)
        if len(self.positions) - 1 == self.stop_after:
            raise InterruptedError

    def step_done(self, run, losses):
        self.rates.append(run.learning_rate_factor)
        self.losses.append(set(losses))

    def validated(self, run, measures, seconds):
        self.validations.append(run.position / run.n_steps)


@pytest.fixture
def timed(monkeypatch, tmp_path):
    """Runs under a clock of which each step takes `pace(now)` seconds; returns model, notes and clock."""

    def run(pace, notes=None, folder=tmp_path / "run", **changes):
        clock, notes = FakeClock(pace), notes or Notes()
        monkeypatch.setattr(checkpoints, "time", clock)
        config = make_config(**{"epochs": EPOCHS, "seconds": SECONDS, "validate_every": EPOCHS} | changes)
        data, few = digits(), digits(10, "test")
        callbacks = [clock, notes]
        found = fit(
            make_site(), data, config, validation=few, folder=folder, callbacks=callbacks, resume=True
        )
        return found.model, notes, clock

    return run


def half_as_fast_from(when):
    return lambda now: 0.5 if now < when else 1.0


@pytest.mark.parametrize("kind", ["one_cycle", "cosine"])
def test_a_run_slowed_down_half_way_ends_annealed_and_in_time(kind, timed):
    _, notes, clock = timed(half_as_fast_from(SECONDS / 2), schedule=kind)
    assert len(notes.rates) == 36
    assert clock.now == SECONDS
    assert max(notes.rates) > 0.95
    assert 0 < notes.rates[-1] < 0.06
    factor = schedule(make_config(schedule=kind), EPOCHS * 3)
    assert notes.rates == pytest.approx([factor(share * EPOCHS * 3) for share in notes.positions])


def test_a_run_that_is_slow_from_the_start_has_fewer_steps_and_the_same_schedule(timed):
    _, notes, clock = timed(lambda now: 3.5)
    assert SECONDS <= clock.now < SECONDS + 3.5
    assert notes.positions == pytest.approx([3.5 * step / SECONDS for step in range(7)])
    assert notes.rates[-1] < 0.2


def test_a_clock_that_is_never_ahead_of_the_steps_changes_no_bit(timed, tmp_path):
    hurried, notes, _ = timed(lambda now: 1e-3, epochs=2)
    plain, _, _ = timed(lambda now: 1e-3, epochs=2, seconds=None, folder=tmp_path / "plain")
    assert len(notes.rates) == 6
    assert digest(hurried) == digest(plain)


def test_terms_and_validations_follow_the_clock(timed):
    terms = [transformation(end=0.5), equivariance(start=0.5)]
    _, notes, _ = timed(lambda now: 2.0, terms=terms, validate_every=EPOCHS // 4)
    for share, losses in zip(notes.positions, notes.losses, strict=True):
        assert ("transformation" in losses, "equivariance" in losses) == (share < 0.5, share >= 0.5)
    assert notes.validations == pytest.approx([0.25, 0.5, 0.75, 1.0], abs=0.01)


def test_a_run_that_goes_on_has_the_time_that_is_left(timed):
    first = Notes(stop_after=8)
    with pytest.raises(InterruptedError):
        timed(lambda now: 1.0, first, checkpoint_seconds=0)
    _, second, clock = timed(lambda now: 1.0)
    assert len(first.rates) == 8
    assert second.positions[0] == pytest.approx(8 / SECONDS)
    assert len(second.rates) == clock.now == 16
    assert second.rates[-1] < 0.06


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_seconds_are_some_or_none(seconds):
    with pytest.raises(ConfigError, match="seconds"):
        make_config(seconds=seconds)
