"""The exponential moving average of the weights: what it is, under a clock too, and who sees it."""

import math

import pytest
import torch

from torchsite.errors import ConfigError
from torchsite.model import load
from torchsite.training import Callback, checkpoints, fit
from torchsite.training.validation import validate
from training_makers import FakeClock, digest, digits, make_config, make_site, transformation

MEAN = [transformation(targets="mean")]
FEW = digits(20, "test")


class Record(Callback):
    """The weights after each step, and how far the run was."""

    def __init__(self):
        self.states, self.advances, self.measures = [], [], None

    def step_done(self, run, losses):
        self.states.append({k: v.clone() for k, v in run.model.state_dict().items()})
        self.advances.append(run.position / run.steps_done)
        self.n_steps = run.n_steps

    def validated(self, run, measures, seconds):
        self.measures = validate(run.judged, run.validation, run.config, run.share)

    def mean(self, ema):
        mean = self.states[0]
        for state, advance in zip(self.states[1:], self.advances[1:], strict=True):
            decay = math.exp(-advance / (ema * self.n_steps))
            mean = {
                k: decay * mean[k] + (1 - decay) * v if v.is_floating_point() else v for k, v in state.items()
            }
        return mean


def train(folder, extractor="identity", callbacks=(), **changes):
    config = make_config(terms=MEAN, **changes)
    return fit(make_site(extractor), digits(), config, validation=FEW, folder=folder, callbacks=callbacks)


def assert_same_weights(found, expected):
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.parametrize("extractor", ["identity", "pyramid"])
def test_the_model_that_is_kept_has_the_mean_of_the_weights_after_each_step(extractor, tmp_path):
    record = Record()
    found = train(tmp_path, extractor, [record], ema=0.4)
    assert record.advances == [1.0] * 6
    assert_same_weights(found.model.state_dict(), record.mean(0.4))
    assert digest(load(tmp_path / "model")) == digest(found.model)


def test_the_mean_is_what_is_validated_and_training_does_not_see_it(tmp_path):
    record, plain = Record(), Record()
    found = train(tmp_path / "mean", callbacks=[record], ema=0.4)
    train(tmp_path / "plain", callbacks=[plain])
    assert found.measures == record.measures != plain.measures
    assert_same_weights(record.states[-1], plain.states[-1])


def test_under_a_clock_the_mean_reaches_back_over_the_same_share_of_the_training(tmp_path, monkeypatch):
    clock, record = FakeClock(lambda now: 1.0), Record()
    monkeypatch.setattr(checkpoints, "time", clock)
    found = train(tmp_path, callbacks=[clock, record], ema=0.4, epochs=100, seconds=6.0)
    assert len(record.states) == 6
    assert record.advances[-1] == pytest.approx(300 * 5 / 6 / 6)
    assert_same_weights(found.model.state_dict(), record.mean(0.4))


@pytest.mark.parametrize("ema", [-0.1, 1.0, float("nan")])
def test_the_mean_reaches_over_a_share_of_the_training(ema):
    with pytest.raises(ConfigError, match="ema"):
        make_config(ema=ema)
