"""Targets: what the prototypes are asked to resemble."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchsite.data import Dataset, to_float
from torchsite.objective import TransformationTerm
from torchsite.objective.targets import (
    FixedMeans,
    NearestExemplars,
    RunningMeans,
    SampledExemplars,
    class_feature_sums,
    class_mean_images,
    nearest_exemplars,
    sample_members,
)
from torchsite.randomness import make_rng
from torchsite.transforms import AffineTransform, TransformFamily
from training_makers import digits, make_site

few = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**31)


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
    source = NearestExemplars(data, 5, 2, None)
    rows = torch.tensor([4, 11])
    found = source(rows, make_rng(3))
    table = nearest_exemplars(data, 5)
    columns = torch.randperm(5, generator=make_rng(3))[:2]
    expected = to_float(data.images[table[rows][:, :, columns].long().flatten()])
    expected = expected.view(2, 3, 2, *data.images.shape[1:]).mean(2)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_remembered_features_are_those_of_the_last_step_where_the_picture_was_covered():
    data = points()
    source = NearestExemplars(data, 3, 1, (2, 4, 4))
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
    source = NearestExemplars(data, 3, 2, None)
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
def test_the_term_chooses_the_source_of_targets(extractor, targets, kind):
    source = TransformationTerm(targets=targets, n_nearest=4).memory(make_site(extractor), digits(20))
    assert type(source) is kind
    remembers = extractor == "pyramid"
    assert bool(source.state_dict()) == remembers
