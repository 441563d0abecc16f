"""`fit`: one seed, one result; what is written, what is refused, what is kept when a run fails."""

import csv
import dataclasses
import json
import logging
import random
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from torchsite.data import Dataset
from torchsite.errors import ConfigError, DataError, TrainingError
from torchsite.model import SITE, load
from torchsite.objective.transformation import LN2
from torchsite.results import Result
from torchsite.training import Callback, fit
from torchsite.training.collapse import CollapseCheck
from torchsite.training.loop import seeded
from torchsite.training.run_folder import RUN_FILE
from torchsite.transforms import TransformFamily
from training_makers import (
    TINY,
    digest,
    digits,
    equivariance,
    make_black_box,
    make_config,
    make_site,
    run,
    transformation,
)

MEAN = [transformation(targets="mean")]
SAMPLED = [transformation(targets="sampled")]


# One seed, one result


def test_a_model_that_was_answering_learns_as_one_that_was_not(tmp_path):
    asleep = make_site("pyramid").eval()
    first, second = (
        run(tmp_path / name, model, epochs=1, terms=MEAN).model.state_dict()
        for name, model in (("new", make_site("pyramid")), ("loaded", asleep))
    )
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


@pytest.mark.parametrize(
    ("extractor", "changes"),
    [
        ("identity", {"terms": MEAN}),
        ("identity", {"optimiser": "muon"}),
        ("identity", {"terms": SAMPLED, "schedule": "cosine"}),
        ("pyramid", {"terms": [*MEAN, equivariance()], "optimiser": "muon", "flip": True}),
        ("pyramid", {"label_smoothing": 0.1}),
        ("pyramid", {"terms": SAMPLED}),
        ("pyramid", {"terms": MEAN, "precision": "bf16"}),
    ],
)
def test_two_runs_from_one_seed_have_the_same_bits(extractor, changes, tmp_path):
    before = digits().images.clone()
    data = digits()
    first = run(tmp_path / "first", make_site(extractor), data, **changes)
    torch.rand(7)  # what else happens in the process has no influence
    second = run(tmp_path / "second", make_site(extractor), data, **changes)
    assert digest(first.model) == digest(second.model) != digest(make_site(extractor))
    assert first.measures == second.measures
    assert torch.equal(data.images, before), "training changed its pictures"
    other = run(tmp_path / "third", make_site(extractor), data, seed=1, **changes)
    assert digest(other.model) != digest(first.model)


def test_a_module_with_dropout_trains_reproducibly(tmp_path):
    def model():
        with torch.random.fork_rng():
            torch.manual_seed(0)
            extractor = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.Dropout(0.5))
            return SITE(extractor, "lateral", 10, image_shape=(1, 28, 28), generator_options=TINY)

    first, second = (
        run(tmp_path / name, model(), terms=MEAN, epochs=1).model for name in ("first", "second")
    )
    assert digest(first) == digest(second)


def test_training_leaves_the_global_random_states_alone(tmp_path):
    states = torch.get_rng_state(), random.getstate()
    numpy_state = np.random.get_state()[1].copy()  # noqa: NPY002 - that is the one to leave alone
    run(tmp_path, epochs=1)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


def test_each_step_and_rank_has_a_random_state_of_its_own():
    draws = []
    for step, rank in ((0, 0), (0, 1), (1, 0), (0, 0)):
        with seeded(0, step, rank):
            draws.append(torch.rand(()).item())
    assert draws[0] == draws[3]
    assert len(set(draws)) == 3


def test_training_lowers_the_loss(tmp_path):
    settings = {"epochs": 8, "terms": MEAN, "family": TransformFamily.none(), "collapse_patience": 8}
    found = run(tmp_path, data=digits(400), **settings)
    rows = logged(tmp_path)
    assert rows["loss"][-1] < 0.8 * rows["loss"][0]
    assert found.measures["accuracy"] >= 0.25


# What is written


def logged(folder):
    with (folder / "logs" / "metrics.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    return {name: [float(row[name]) for row in rows if row[name]] for name in rows[0]}


@pytest.mark.parametrize("kind", [make_site, make_black_box])
def test_a_run_leaves_weights_logs_and_a_result(kind, tmp_path):
    found = run(tmp_path, kind(), epochs=3, validate_every=2)
    assert digest(load(tmp_path / "model")) == digest(found.model)
    assert not found.model.training
    assert found.folder == tmp_path
    assert not list(tmp_path.rglob("*.part"))
    result = Result.load(tmp_path / "result.json")
    assert result.values == found.measures
    assert set(found.measures) >= {"accuracy", "posed accuracy"}
    assert result.config["training"]["epochs"] == 3
    expected = {"loss", "accuracy", "learning rate", "validation accuracy"}
    if kind is make_site:
        expected |= {"classification", "transformation", "transformation minus ln 2", "|w|", "|z|"}
        expected |= {"validation raw", "validation floor", "validation calibrated", "validation centred"}
    rows = logged(tmp_path)
    assert expected <= rows.keys()
    if kind is make_site:
        differences = [a - LN2 for a in rows["transformation"]]
        assert rows["transformation minus ln 2"] == pytest.approx(differences, abs=1e-6)


def test_the_measures_are_those_of_the_final_weights_whenever_validation_runs(tmp_path):
    every = run(tmp_path / "every", epochs=3, validate_every=1)
    seldom = run(tmp_path / "seldom", epochs=3, validate_every=2)
    assert every.measures == seldom.measures


def test_nothing_is_said_and_nothing_is_left_changed(tmp_path, capfd, caplog):
    levels = {name: logging.getLogger(name).level for name in ("lightning.pytorch", "lightning.fabric")}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        run(tmp_path, epochs=1)
        run(tmp_path, epochs=1, resume=True)
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")
    assert not [str(one.message) for one in warned]
    assert not [one for one in caplog.records if one.name.startswith("lightning")]
    assert {name: logging.getLogger(name).level for name in levels} == levels


# What is refused


def test_an_earlier_run_is_never_overwritten(tmp_path):
    run(tmp_path, epochs=1)
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    with pytest.raises(ConfigError, match="resume=True"):
        run(tmp_path, epochs=1, seed=5)
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before


def test_a_run_whose_beginning_is_not_known_is_not_gone_on_with(tmp_path):
    run(tmp_path, epochs=1)
    (tmp_path / RUN_FILE).unlink()
    with pytest.raises(ConfigError, match=r"run\.json"):
        run(tmp_path, resume=True)
    assert not (tmp_path / RUN_FILE).exists()


def test_pictures_or_classes_that_are_not_the_models_are_refused(tmp_path):
    data = digits(40)
    wide = Dataset(torch.zeros(40, 1, 28, 30, dtype=torch.uint8), data.labels, data.classes, "wide")
    with pytest.raises(DataError):
        run(tmp_path, data=wide)
    fewer = Dataset(data.images, data.labels % 3, ("a", "b", "c"), "fewer")
    with pytest.raises(DataError, match="classes"):
        run(tmp_path, data=fewer)
    named = SITE("identity", "lateral", 10, image_shape=(1, 28, 28), classes=list("abcdefghij"))
    with pytest.raises(DataError, match="classes"):
        run(tmp_path, named)
    empty = dataclasses.replace(data, labels=data.labels % 9)
    with pytest.raises(DataError, match="9"):
        run(tmp_path, data=empty)
    with pytest.raises(ConfigError, match=r"batch_size: .* 20 "):
        run(tmp_path, data=digits(20))


# What is kept when a run fails


class Poison(Callback):
    """Makes the weights NaN before a step."""

    def __init__(self, step):
        self.step = step

    def step_begins(self, run, batch):
        if run.steps_done == self.step:
            with torch.no_grad():
                next(run.model.parameters()).fill_(torch.nan)


def test_a_loss_that_is_no_number_stops_the_run_and_names_the_pictures(tmp_path):
    with pytest.raises(TrainingError, match=r"nan at step 4, .*\[\d+") as error:
        run(tmp_path, callbacks=[Poison(4)])
    rows = json.loads(str(error.value).split("numbered ")[1].split("]")[0] + "]")
    assert len(rows) == 32
    good = load(tmp_path / "last_good")
    assert all(bool(torch.isfinite(tensor).all()) for tensor in good.state_dict().values())


def test_a_run_that_diverges_in_its_first_epoch_leaves_finite_weights_or_none(tmp_path):
    with pytest.raises(TrainingError, match="step"):
        run(tmp_path, learning_rate=1e30, warm_up=0.0)
    if (tmp_path / "last_good").exists():
        assert all(bool(torch.isfinite(t).all()) for t in load(tmp_path / "last_good").state_dict().values())


class Silent(nn.Module):
    """A generator whose prototypes say nothing: raw zeros, one half everywhere."""

    def __init__(self):
        super().__init__()
        self.zero = nn.Parameter(torch.zeros(()))

    def forward(self, features):
        return self.zero.expand(len(features), 10, *features.shape[1:]) * 0


def test_a_collapse_stops_the_run_with_the_way_out(tmp_path):
    model = SITE("identity", Silent(), 10, image_shape=(1, 28, 28))
    with pytest.raises(TrainingError, match=r"34 epochs .* 0\.6931.*product_scale"):
        run(tmp_path, model, epochs=40)  # of three steps


def test_a_few_steps_are_no_collapse(tmp_path):
    run(tmp_path, SITE("identity", Silent(), 10, image_shape=(1, 28, 28)), epochs=5)


class Runaway(Silent):
    """Draws nothing for an epoch of three steps, then much too much."""

    steps = 0

    def forward(self, features):
        self.steps += self.training
        return super().forward(features) + self.zero + (1e4 if self.steps > 3 else 0)


def test_weights_that_run_away_stop_the_run_and_those_before_are_kept(tmp_path):
    model = SITE("identity", Runaway(), 10, image_shape=(1, 28, 28))
    with pytest.raises(TrainingError, match="epoch 2"):
        run(tmp_path, model, epochs=5)
    kept = load_file(tmp_path / "last_good" / "model.safetensors")
    assert kept["generator.zero"].abs() < 1


def epoch_of(watch, loss, n_steps=60):
    run = SimpleNamespace(epoch=3)
    for _ in range(n_steps):
        watch.step_done(run, {"transformation": torch.tensor(loss)})
    watch.epoch_done(run)


def test_the_watch_for_collapse_starts_again_after_a_good_epoch():
    watch = CollapseCheck(2)
    for loss in (LN2, 0.4, LN2):
        epoch_of(watch, loss)
    assert (watch.flat_epochs, watch.flat_steps) == (1, 60)
    again = CollapseCheck(2)
    again.load_state_dict(watch.state_dict())
    with pytest.raises(TrainingError, match="collapsed"):
        epoch_of(again, LN2)


def test_short_epochs_count_once_they_are_a_hundred_steps():
    watch = CollapseCheck(2)
    for _ in range(3):
        epoch_of(watch, LN2, n_steps=30)
    with pytest.raises(TrainingError, match="4 epochs"):
        epoch_of(watch, LN2, n_steps=30)


def test_a_watch_goes_on_from_what_was_noted_before_steps_were_counted():
    watch = CollapseCheck(2)
    watch.load_state_dict({"flat_epochs": 1, "sum": 0.0, "n": 0})
    epoch_of(watch, LN2, n_steps=60)
    with pytest.raises(TrainingError, match="3 epochs"):
        epoch_of(watch, LN2, n_steps=60)


# Who looks on


class Note(Callback):
    """Notes what it is told; may ask the run to end."""

    def __init__(self, end_after=None):
        self.told, self.end_after = [], end_after

    def started(self, run):
        self.told.append("started")

    def step_begins(self, run, batch):
        self.told.append(f"begins {run.steps_done}")

    def step_done(self, run, losses):
        self.told.append(f"done {run.steps_done}")
        run.ending = run.steps_done == self.end_after

    def epoch_done(self, run):
        self.told.append(f"epoch {run.epoch}")

    def validated(self, run, measures, seconds):
        self.told.append(f"validated {len(measures)}")

    def ended(self, run):
        self.told.append("ended")


def test_a_watch_is_told_of_everything_and_may_end_the_run(tmp_path):
    note = Note(end_after=4)
    found = run(tmp_path, callbacks=[note], epochs=5, validate_every=5)
    steps = [f"{what} {n + (what == 'done')}" for n in range(4) for what in ("begins", "done")]
    expected = ["started", *steps[:6], "epoch 1", *steps[6:], "epoch 2", "validated 6", "ended"]
    assert note.told == expected
    assert len(found.measures) == 6
    assert digest(load(tmp_path / "model")) == digest(found.model)


def test_a_progress_bar_is_shown_only_when_asked_for(tmp_path, capfd):
    fit(make_site(), digits(), make_config(epochs=1), folder=tmp_path / "quiet")
    assert capfd.readouterr() == ("", "")
    fit(make_site(), digits(), make_config(epochs=1), folder=tmp_path / "shown", progress=True)
    said = capfd.readouterr().out
    assert "epoch 1/1: loss" in said
    assert "2/2" in said
