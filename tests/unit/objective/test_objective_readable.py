"""Readable prototypes: strangers read, untaught by the writer; the best exemplar is the target."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis.strategies import integers

from experiments.readable import ReadablePrototypes
from experiments.readers import READERS, Disturbance, blurred, lesson, train_reader
from torchsite.errors import ConfigError
from torchsite.objective import Share
from torchsite.objective.term import Step
from torchsite.objective.transformation import best_of, transformation_loss
from torchsite.randomness import make_rng
from torchsite.training.batches import make_batch
from torchsite.training.fit import make_objective
from torchsite.transforms import AffineTransform, TransformFamily
from training_makers import digits, make_config, make_site, transformation

DATA = digits(40)
STILL = TransformFamily.none()
READ = {"name": "readable_prototypes", "readers": ["pooled"], "reader_epochs": 0.1, "ramp": 0.0}


def make_both(**changes):
    """An objective in training, and its batch at a step; all in double precision."""
    config = make_config(batch_size=8, views=["upright", "posed"], **{"terms": [READ]} | changes)
    model = make_site().double()
    objective = make_objective(model, DATA, config).train()
    like = next(model.parameters())
    return objective, lambda step=0: make_batch(DATA, config, objective.views, step, like, Share())


@settings(max_examples=10, deadline=None)
@given(turns=integers(-1, 1), n=integers(1, 3), k=integers(1, 4), seed=integers(0, 2**20))
def test_the_best_exemplar_is_the_one_of_least_loss(turns, n, k, seed):
    rng = make_rng(seed)
    exemplars = torch.rand(n, 2, k, 1, 6, 6, generator=rng, dtype=torch.float64)
    raw = 3 * torch.randn(n, 2, 1, 6, 6, generator=rng, dtype=torch.float64)
    transform = AffineTransform.rotation(torch.full((n,), 90.0 * turns))
    chosen = best_of(exemplars, raw, transform, 1.0)
    for picture in range(n):
        for label in range(2):
            pair = raw[[picture], [label], None]
            losses = [
                transformation_loss(pair, one[None, None], transform[picture : picture + 1])
                for one in exemplars[picture, label]
            ]
            best = int(torch.stack(losses).argmin())
            assert torch.equal(chosen[picture, label], exemplars[picture, label, best])


def test_where_nothing_is_chosen_the_mean_is_the_target():
    """The loss of the best of several exemplars is at most that of their mean's, in every term's step."""
    found = {}
    for choose in ("mean", "best"):
        objective, batch_at = make_both(terms=[transformation(choose=choose, n_nearest=4, n_exemplars=4)])
        batch = batch_at()
        targets = objective.memories["0"](batch.rows, make_rng(0), batch.share)
        found[choose] = objective(batch).losses["transformation"], targets
    (mean, means), (best, apart) = found["mean"], found["best"]
    torch.testing.assert_close(apart.mean(2), means)
    assert best < mean


def test_what_the_picture_does_not_cover_can_be_asked_to_be_black():
    losses = {}
    for unseen in ("free", "black"):
        objective, batch_at = make_both(terms=[transformation(unseen=unseen)])
        batch = batch_at()
        run = objective.model.run(batch.pictures())
        run.raw_prototypes.retain_grad()
        objective.run = lambda _, run=run: run
        objective(batch).losses["loss"].backward()
        covered = batch.poses[1].mask((28, 28))
        losses[unseen] = run.raw_prototypes.grad[8:].abs().sum((1, 2))[~covered]
    assert losses["free"].abs().max() == 0
    assert losses["black"].min() > 0


def test_the_best_of_means_is_refused():
    with pytest.raises(ConfigError, match=r"transformation\.choose: "):
        make_both(terms=[transformation(targets="mean", choose="best")])


def test_gradients_reach_the_generator_and_no_reader():
    objective, batch_at = make_both()
    objective(batch_at()).losses["readable_prototypes"].backward()
    assert all(p.grad is None for p in objective.memories.parameters())
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in objective.model.parameters())


def test_readers_stay_in_evaluation_mode_and_do_not_change():
    objective, batch_at = make_both()
    before = {name: tensor.clone() for name, tensor in objective.memories.state_dict().items()}
    assert objective.training
    assert not any(module.training for module in objective.memories["0"].modules())
    objective(batch_at()).losses["loss"].backward()
    after = objective.memories.state_dict()
    assert before.keys() == after.keys()
    assert len(before) > 10
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("n_read", [1, 3])
def test_parts_of_a_batch_average_to_the_whole(n_read):
    objective, batch_at = make_both(terms=[READ | {"n_read": n_read}])
    objective.model.eval()  # batch norm sees another batch in each part
    batch = batch_at()
    whole = objective(batch).losses["readable_prototypes"]
    parts = [objective(part).losses["readable_prototypes"] for part in batch.parts(2)]
    torch.testing.assert_close(torch.stack(parts).mean(), whole)
    assert not torch.isclose(parts[0], parts[1])


def test_the_loss_is_the_cross_entropy_of_what_is_read():
    objective, batch_at = make_both(terms=[READ | {"n_read": 10}])
    term = replace(objective.terms[0], blur=0.0, dimming=0.0, noise=0.0)
    still = Disturbance(STILL, 0.0, 0.0, 0.0)
    objective.terms, objective.memories["0"].disturbance = (term,), still
    batch = batch_at()
    found = objective(batch).losses
    with torch.no_grad():
        prototypes = objective.model.run(batch.pictures()).prototypes
        logits = objective.memories["0"].networks[0](prototypes.flatten(0, 1))
    classes = torch.arange(10).repeat(len(prototypes))
    torch.testing.assert_close(found["readable_prototypes"], F.cross_entropy(logits, classes))
    expected = (logits.argmax(1) == classes).float().mean()
    torch.testing.assert_close(found["prototypes read"], expected, check_dtype=False)


def test_prototypes_are_read_as_they_are_carried_back_and_in_new_poses():
    objective, batch_at = make_both(terms=[READ | {"turned": True}])
    batch, term = batch_at(), objective.terms[0]
    step = Step(batch, objective.model, objective.model.run(batch.pictures()))
    upright, posed = step.judged
    still = torch.eye(3).expand(8, 3, 3)
    found = [term.motion(step, posed, make_rng(seed)) for seed in range(12)]
    matrices = [None if one is None else (one @ posed.pose).affine_part().float() for one in found]
    back = [one for one in matrices if one is not None and torch.allclose(one, still, atol=1e-5)]
    anew = [one for one in matrices if one is not None and not torch.allclose(one, still, atol=1e-5)]
    assert len(back) + len(anew) < 12
    assert min(len(back), len(anew)) > 0
    assert all(not torch.allclose(one, anew[0]) for one in anew[1:])
    assert replace(term, turned=False).motion(step, upright, make_rng(0)) is None


def test_a_motion_comes_before_the_disturbance():
    images, turn = DATA.images[:4] / 255, AffineTransform.rotation(torch.full((4,), 90.0))
    turned = Disturbance()(torch.rot90(images, 1, (-2, -1)), make_rng(1))
    torch.testing.assert_close(Disturbance()(images, make_rng(1), motion=turn), turned)


def test_the_weight_grows_over_its_ramp():
    objective, batch_at = make_both(terms=[READ | {"ramp": 0.5}], epochs=2)
    full, _ = make_both(epochs=2)
    for step, share in ((0, 0.0), (2, 0.4), (5, 1.0), (9, 1.0)):
        batch = batch_at(step)
        losses = [one(batch).losses["readable_prototypes"] for one in (objective, full)]
        torch.testing.assert_close(losses[0], share * losses[1])


@pytest.mark.parametrize("name", READERS)
def test_a_reader_is_a_function_of_name_data_and_seed(name):
    def learn(seed=0):
        return train_reader(name, DATA, TransformFamily(), Disturbance(), epochs=6, seed=seed)

    before = torch.random.get_rng_state()
    first, again, other = learn(), learn(), learn(1)
    assert torch.equal(before, torch.random.get_rng_state())
    images = DATA.images[:4] / 255
    assert torch.equal(first(images), again(images))
    assert not torch.allclose(first(images), other(images))
    assert not first.training


def test_a_reader_learns_to_read():
    data = digits(1500)
    reader = train_reader("pooled", data, STILL, Disturbance(), epochs=3, seed=0)
    test = digits(300, "test")
    with torch.no_grad():
        share = (reader(test.images / 255).argmax(1) == test.labels).float().mean()
    assert share > 0.7


def test_lessons_are_half_upright_and_half_posed():
    images, labels = lesson(DATA, TransformFamily(), Disturbance(STILL, 0.0, 0.0, 0.0), make_rng(3))
    rows = torch.randint(len(DATA), (len(labels),), generator=make_rng(3))
    assert torch.equal(labels, DATA.labels[rows])
    same = (images - DATA.images[rows] / 255).abs().amax((1, 2, 3)) < 1e-4
    half = len(labels) // 2
    assert same[half:].all()
    assert not same[:half].any()


def test_disturbances_of_shares_are_those_of_the_whole():
    images = DATA.images[:8] / 255
    whole = Disturbance()(images, make_rng(1))
    for rank in range(2):
        share = Share(rank=rank, ranks=2)
        torch.testing.assert_close(
            Disturbance()(images[share.rows(8)], make_rng(1), share), whole[share.rows(8)]
        )
    assert (whole - images).abs().mean() > 0.01


def test_a_blur_keeps_what_is_even_and_spreads_a_point():
    even = torch.full((1, 2, 15, 15), 0.7)
    torch.testing.assert_close(blurred(even, 1.0)[..., 4:-4, 4:-4], even[..., 4:-4, 4:-4])
    point = torch.zeros(1, 1, 15, 15)
    point[..., 7, 7] = 1
    spread = blurred(point, 1.0)
    torch.testing.assert_close(spread.sum(), torch.tensor(1.0))
    assert spread.max() < 0.3
    assert torch.equal(blurred(point, 0.0), point)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"readers": ("poold",)}, "pooled"),
        ({"readers": ()}, "readers: "),
        ({"n_read": 0}, "n_read: "),
        ({"ramp": -1.0}, "ramp: "),
    ],
)
def test_options_that_make_no_sense_are_refused(options, words):
    with pytest.raises(ConfigError, match=words):
        ReadablePrototypes(**options)


def test_prototypes_that_are_no_pictures_are_not_read():
    with pytest.raises(ConfigError, match="identity"):
        make_objective(make_site("pyramid"), DATA, make_config(terms=[READ]))
