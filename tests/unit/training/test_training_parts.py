"""The parts of training: batches, schedules, optimisers, targets, averages, configurations."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from training_makers import digits, make_config, make_site

from torchsite.configs import from_mapping, to_mapping
from torchsite.data import Dataset, to_float
from torchsite.errors import ConfigError
from torchsite.objective import class_feature_sums
from torchsite.randomness import make_rng
from torchsite.training import TrainingConfig
from torchsite.training.fit import hold_out
from torchsite.training.loader import Parts, RowLoader, epoch_order
from torchsite.training.optimisers import Muon, make_optimisers, orthogonalise, schedule
from torchsite.training.targets import (
    FixedMeans,
    NearestExemplars,
    RunningMeans,
    SampledExemplars,
    class_mean_images,
    make_targets,
    nearest_exemplars,
    sample_members,
)
from torchsite.transforms import AffineTransform, TransformFamily

few = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**31)


# Batches


@few
@given(st.integers(4, 60), st.integers(2, 20), seeds, st.integers(0, 3), st.data())
def test_batches_follow_from_seed_epoch_and_step_alone(n, batch_size, seed, epoch, data):
    batch_size = min(batch_size, n)
    steps = n // batch_size
    first = data.draw(st.integers(0, steps - 1))
    whole = list(RowLoader(n, batch_size, seed, lambda: epoch * steps))
    resumed = list(RowLoader(n, batch_size, seed, lambda: epoch * steps + first))
    assert len(whole) == steps
    assert all(torch.equal(a, b) for a, b in zip(whole[first:], resumed, strict=True))
    seen = torch.cat(whole)
    assert len(seen.unique()) == len(seen) == steps * batch_size
    assert torch.equal(seen, epoch_order(n, seed, epoch)[: len(seen)])


@few
@given(st.integers(1, 4), st.integers(1, 4), seeds)
def test_ranks_share_every_batch_between_them(ranks, each, seed):
    n, batch_size = 37, ranks * each
    whole = list(RowLoader(n, batch_size, seed, lambda: 0))
    parts = [list(RowLoader(n, batch_size, seed, lambda: 0, rank, ranks)) for rank in range(ranks)]
    for step, rows in enumerate(whole):
        shared = torch.cat([part[step] for part in parts])
        assert all(len(part[step]) == each for part in parts)
        assert torch.equal(shared.sort().values, rows.sort().values)


def test_epochs_and_seeds_have_orders_of_their_own():
    orders = [tuple(epoch_order(50, seed, epoch).tolist()) for seed in range(3) for epoch in range(3)]
    assert len(set(orders)) == 9


def test_batches_that_cannot_be_made_are_refused():
    with pytest.raises(ConfigError, match="expected at most the 5 training pictures, got 6"):
        RowLoader(5, 6, 0, lambda: 0)
    with pytest.raises(ConfigError, match=r"expected a multiple of 2 \(2 processes × 1 parts"):
        RowLoader(10, 5, 0, lambda: 0, ranks=2)


@few
@given(st.integers(1, 40), st.integers(1, 40))
def test_parts_cover_all_rows_in_order(n, size):
    parts = list(Parts(n, size))
    assert len(parts) == len(Parts(n, size))
    assert torch.equal(torch.cat(parts), torch.arange(n))


def test_a_tenth_is_held_out_and_nothing_is_in_both():
    data = Dataset(
        torch.arange(100, dtype=torch.uint8).view(-1, 1, 1, 1), torch.arange(100) % 2, ("even", "odd")
    )
    rest, held = hold_out(data, seed=3)
    both = torch.cat([rest.images, held.images]).flatten()
    assert (len(rest), len(held)) == (90, 10)
    assert torch.equal(both.sort().values, torch.arange(100, dtype=torch.uint8))
    again, _ = hold_out(data, seed=3)
    assert torch.equal(again.images, rest.images)


# Schedules and optimisers


@few
@given(st.sampled_from(["one_cycle", "cosine"]), st.floats(0, 0.9), st.integers(2, 200))
def test_the_rate_rises_to_its_peak_and_falls_to_almost_nothing(kind, warm_up, n_steps):
    config = make_config(schedule=kind, warm_up=warm_up)
    factors = [schedule(config, n_steps)(step) for step in range(n_steps)]
    peak = max(1, round(warm_up * n_steps))
    assert all(0 < factor <= 1 + 1e-9 for factor in factors)
    assert max(factors) == pytest.approx(1)
    assert factors[:peak] == sorted(factors[:peak])
    assert factors[peak:] == sorted(factors[peak:], reverse=True)
    assert schedule(config, n_steps)(n_steps) == pytest.approx(0, abs=1e-12)
    if kind == "one_cycle":
        assert factors == pytest.approx(
            [
                (step + 1) / peak if step < peak else (n_steps - step) / (n_steps - peak)
                for step in range(n_steps)
            ]
        )


@few
@given(st.sampled_from(["one_cycle", "cosine"]), st.floats(0, 0.9), st.integers(2, 40), st.integers(1, 4))
def test_every_cycle_repeats_the_first(kind, warm_up, length, cycles):
    once = make_config(schedule=kind, warm_up=warm_up)
    often = make_config(schedule=kind, warm_up=warm_up, epochs=cycles, cycles=cycles)
    one = [schedule(once, length)(step) for step in range(length)]
    assert [schedule(often, cycles * length)(step) for step in range(cycles * length)] == one * cycles
    assert schedule(often, cycles * length)(cycles * length) == pytest.approx(0, abs=1e-12)


def test_the_cosine_is_half_way_in_the_middle():
    half = schedule(make_config(schedule="cosine", warm_up=0.0), 101)(51)
    assert half == pytest.approx((1 - math.cos(math.pi / 2)) / 2, abs=1e-9)


@few
@given(st.integers(2, 40), st.integers(2, 40), st.floats(1e-6, 1e6), seeds)
def test_orthogonalised_updates_have_singular_values_near_one(rows, cols, scale, seed):
    """For matrices that are not nearly singular: the iteration lifts a singular value only so far."""
    left, _ = torch.linalg.qr(torch.randn(rows, rows, generator=make_rng(seed)))
    right, _ = torch.linalg.qr(torch.randn(cols, cols, generator=make_rng(seed + 1)))
    values = torch.linspace(0.1, 1, min(rows, cols))
    middle = torch.zeros(rows, cols)
    middle.diagonal().copy_(values)
    update = orthogonalise(scale * left @ middle @ right)
    found = torch.linalg.svdvals(update)
    assert found.min() > 0.6
    assert found.max() < 1.3


def test_the_orthogonalised_update_keeps_the_singular_vectors():
    matrix = torch.randn(6, 10, generator=make_rng(0), dtype=torch.float64)
    found = orthogonalise(matrix)
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    core = u.T @ found @ v.T
    torch.testing.assert_close(core, torch.diag(core.diagonal()), rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", [(6, 54), (54, 6), (8, 8), (1, 9)])
def test_orthogonalising_is_the_newton_schulz_iteration_step_by_step(shape):
    matrix = torch.randn(*shape, generator=make_rng(0), dtype=torch.float64)
    x = matrix / matrix.norm()
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * x @ x.T @ x + 2.0315 * x @ x.T @ x @ x.T @ x
    torch.testing.assert_close(orthogonalise(matrix), x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_every_parameter_has_one_optimiser_and_only_kernels_decay(optimiser):
    model = make_site("pyramid")
    config = make_config(optimiser=optimiser, weight_decay=0.1)
    optimisers = make_optimisers(model, config)
    groups = [group for one in optimisers for group in one.param_groups]
    owned = [parameter for group in groups for parameter in group["params"]]
    assert len(owned) == len({id(p) for p in owned}) == len(list(model.parameters()))
    for group in groups:
        assert all((p.ndim > 1) == (group["weight_decay"] > 0) for p in group["params"])
    muon = [p for one in optimisers if isinstance(one, Muon) for g in one.param_groups for p in g["params"]]
    assert bool(muon) == (optimiser == "muon")
    assert all(p.ndim == 4 and p.shape[-1] > 1 for p in muon)


def test_frozen_parameters_are_left_alone():
    model = make_site("pyramid")
    model.feature_extractor.requires_grad_(False)
    owned = {id(p) for g in make_optimisers(model, make_config())[0].param_groups for p in g["params"]}
    assert not owned & {id(p) for p in model.feature_extractor.parameters()}


def test_a_muon_step_moves_against_the_gradient_by_its_learning_rate():
    weight = nn.Parameter(torch.randn(6, 4, 3, 3, generator=make_rng(0)))
    before = weight.detach().clone()
    weight.grad = torch.randn(6, 4, 3, 3, generator=make_rng(1))
    Muon([weight], lr=0.1, momentum=0.0).step()
    moved = before - weight.detach()
    assert (moved * weight.grad).sum() > 0
    assert torch.linalg.svdvals(moved.flatten(1) / 0.1).min() > 0.5


# Targets


def points(n=30, n_classes=3, seed=0):
    rng = make_rng(seed, "points")
    images = torch.randint(0, 256, (n, 1, 5, 6), dtype=torch.uint8, generator=rng)
    return Dataset(images, torch.arange(n) % n_classes, tuple(f"class {i}" for i in range(n_classes)))


@few
@given(st.integers(6, 30), st.integers(2, 4), st.integers(1, 6), seeds)
def test_the_nearest_are_those_of_brute_force(n, n_classes, k, seed):
    data = points(n, n_classes, seed)
    table = nearest_exemplars(data, k, chunk=7)
    flat = to_float(data.images).flatten(1).double()
    assert table.shape == (n, n_classes, k)
    for row in range(n):
        for label in range(n_classes):
            others = [i for i in range(n) if data.labels[i] == label and i != row] or [row]
            ranked = sorted((flat[row] - flat[i]).square().sum().item() for i in others)
            usable = min(k, max(1, int((data.labels == label).sum()) - 1))
            chosen = table[row, label].tolist()
            assert all(int(data.labels[i]) == label for i in chosen)
            assert row not in chosen or others == [row]
            found = [(flat[row] - flat[i]).square().sum().item() for i in chosen]
            assert found[:usable] == pytest.approx(ranked[:usable], abs=1e-5)
            assert chosen == (chosen[:usable] * k)[:k]


def test_large_pictures_are_compared_at_no_more_than_28_pixels():
    small = torch.randint(0, 256, (8, 1, 28, 28), dtype=torch.uint8, generator=make_rng(0))
    large = small.repeat_interleave(2, 2).repeat_interleave(2, 3)
    tables = [
        nearest_exemplars(Dataset(images, torch.arange(8) % 2, ("a", "b")), 2) for images in (small, large)
    ]
    assert torch.equal(*tables)


def test_members_are_drawn_uniformly():
    members = [torch.tensor([3, 5, 9]), torch.tensor([7]), torch.arange(10, 15)]
    n = 20_000
    chosen = sample_members(members, n, make_rng(0))
    for column, rows in enumerate(members):
        counts = torch.stack([(chosen[:, column] == row).sum() for row in rows]).double()
        assert counts.sum() == n
        p = 1 / len(rows)
        assert bool(((counts - n * p).abs() <= 5 * (n * p * (1 - p)) ** 0.5).all())


def test_fixed_means_are_the_class_mean_pictures():
    data = points()
    means = FixedMeans(data)(torch.arange(4), make_rng(0))
    for label in range(3):
        expected = data.images[data.labels == label].double().mean(0) / 255
        torch.testing.assert_close(means[label].double(), expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(means, class_mean_images(data))


@few
@given(st.floats(0, 0.999), st.integers(1, 5), seeds)
def test_running_means_forget_by_their_decay(decay, steps, seed):
    source = RunningMeans(3, (2, 4, 4), decay).double()
    assert torch.equal(source(torch.arange(1), make_rng(0)), torch.full((3, 2, 4, 4), 0.5).double())
    history = []
    for step in range(steps):
        rng = make_rng(seed, step)
        features = torch.rand(5, 2, 4, 4, generator=rng, dtype=torch.float64)
        labels = torch.randint(2, (5,), generator=rng)  # class 2 is never seen
        pose = TransformFamily().sample(5, rng=rng)
        source.learn(features, torch.arange(5), labels, pose)
        history.append(class_feature_sums(features, labels, pose, 3))
    sums, weights = (
        sum(decay ** (steps - 1 - i) * new[part] for i, new in enumerate(history)) for part in (0, 1)
    )
    seen = weights.expand_as(sums) > 1e-6
    found = source(torch.arange(1), make_rng(0))
    torch.testing.assert_close(found[seen], (sums / weights)[seen])
    assert bool((found[~seen] == 0.5).all())
    assert bool((found[2] == 0.5).all())


def test_nearest_targets_are_means_of_some_of_the_nearest():
    data = points()
    config = make_config(targets="nearest", n_nearest=5, n_exemplars=2)
    source = NearestExemplars(data, config, None)
    rows = torch.tensor([4, 11])
    found = source(rows, make_rng(3))
    table = nearest_exemplars(data, 5)
    columns = torch.randperm(5, generator=make_rng(3))[:2]
    expected = to_float(data.images[table[rows][:, :, columns].long().flatten()])
    expected = expected.view(2, 3, 2, *data.images.shape[1:]).mean(2)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_remembered_features_are_those_of_the_last_step_where_the_picture_was_covered():
    data = points()
    source = NearestExemplars(data, make_config(n_nearest=3, n_exemplars=1), (2, 4, 4))
    assert bool((source.bank == 128).all())
    rows, labels = torch.tensor([4, 11]), torch.tensor([1, 2])
    features = torch.rand(2, 2, 4, 4, generator=make_rng(0))
    source.learn(features, rows, labels, AffineTransform.rotation(torch.tensor([90.0, 0.0])))
    expected = torch.stack([features[0].rot90(-1, (-2, -1)), features[1]])
    torch.testing.assert_close(source.bank[rows] / 255, expected, rtol=0, atol=0.5 / 255 + 1e-6)
    kept = source.bank.clone()
    away = AffineTransform.shift(torch.tensor([0.5, 5.0]), torch.tensor([0.0, 0.0]))
    source.learn(torch.zeros(2, 2, 4, 4), rows, labels, away)
    covered = away.inverse().mask((4, 4))
    assert covered[0].any()
    assert not covered[0].all()
    assert torch.equal(source.bank[rows[1]], kept[rows[1]])
    assert bool((source.bank[rows[0]][:, covered[0]] == 0).all())
    assert torch.equal(source.bank[rows[0]][:, ~covered[0]], kept[rows[0]][:, ~covered[0]])
    others = torch.ones(len(data), dtype=torch.bool).index_fill(0, rows, False)
    assert bool((source.bank[others] == 128).all())


def test_a_bank_of_pictures_learns_nothing():
    data = points()
    source = NearestExemplars(data, make_config(n_nearest=3), None)
    before = data.images.clone()
    source.learn(torch.zeros(2, 1, 5, 6), torch.tensor([0, 1]), data.labels[:2], AffineTransform.identity(2))
    assert torch.equal(data.images, before)


def test_sampled_targets_are_features_of_members():
    data, model = digits(40), make_site("pyramid").eval()
    source = SampledExemplars(data, model)
    found = source(torch.arange(3), make_rng(5))
    chosen = sample_members(source.members, 3, make_rng(5))
    assert found.shape == (3, 10, *model.feature_shape)
    assert not found.requires_grad
    assert torch.equal(data.labels[chosen], torch.arange(10).expand(3, 10))
    with torch.no_grad():
        one = (model.features(to_float(data.images[chosen[1, 4]][None]))[0] + 1) / 2
    torch.testing.assert_close(found[1, 4], one, rtol=1e-4, atol=1e-5)
    assert not list(source.parameters())


@pytest.mark.parametrize(
    ("extractor", "targets", "kind"),
    [
        ("identity", "mean", FixedMeans),
        ("pyramid", "mean", RunningMeans),
        ("identity", "nearest", NearestExemplars),
        ("pyramid", "nearest", NearestExemplars),
        ("identity", "sampled", SampledExemplars),
    ],
)
def test_the_configuration_chooses_the_source_of_targets(extractor, targets, kind):
    source = make_targets(make_site(extractor), digits(20), make_config(targets=targets))
    assert type(source) is kind
    remembers = extractor == "pyramid"
    assert bool(source.state_dict()) == remembers


# Configurations


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epochs": 0}, "epochs: expected at least 1"),
        ({"batch_size": 1}, "batch_size: expected at least 2"),
        ({"epochs": 5, "cycles": 2}, "cycles: expected a divisor of epochs = 5, got 2"),
        ({"cycles": 0}, "cycles: expected at least 1, got 0"),
        ({"warm_up": 1.0}, r"warm_up: expected a number in \[0, 1\)"),
        ({"ema_decay": 1.0}, "ema_decay"),
        ({"mean_decay": -0.1}, "mean_decay"),
        ({"transformation_weight": -1.0}, "transformation_weight: expected at least 0"),
        ({"learning_rate": 0.0}, "learning_rate: expected a positive number"),
        ({"muon_learning_rate": -1.0}, "muon_learning_rate: expected a positive number, got -1.0"),
        ({"learning_rate": math.nan}, "learning_rate"),
        ({"n_exemplars": 17}, "n_exemplars: expected at most n_nearest = 16"),
    ],
)
def test_values_out_of_range_are_refused(changes, words):
    with pytest.raises(ConfigError, match=words):
        TrainingConfig(**changes)


def test_configs_come_back_from_plain_data_and_refuse_what_they_do_not_know():
    config = TrainingConfig(epochs=3, family=TransformFamily(max_rotation=10))
    assert from_mapping(TrainingConfig, to_mapping(config)) == config
    with pytest.raises(ConfigError, match="no field 'epoch': did you mean 'epochs'"):
        from_mapping(TrainingConfig, {"epoch": 3})
    with pytest.raises(ConfigError, match="targets: expected one of"):
        from_mapping(TrainingConfig, {"targets": "median"})
