"""Batches: a function of seed and step, shared by the processes."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from torchsite.configs import from_mapping
from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.objective import Share
from torchsite.objective.views import POSED
from torchsite.training import TrainingConfig
from torchsite.training.batches import check_batches, epoch_order, make_batch, parts_in_order, step_rows
from torchsite.training.fit import hold_out
from training_makers import digits, make_config

few = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**31)


@few
@given(st.integers(4, 60), st.integers(2, 20), seeds, st.integers(0, 3), st.data())
def test_batches_follow_from_seed_epoch_and_step_alone(n, batch_size, seed, epoch, data):
    batch_size = min(batch_size, n)
    steps = n // batch_size
    first = data.draw(st.integers(0, steps - 1))
    whole = [step_rows(n, batch_size, seed, epoch * steps + step) for step in range(steps)]
    epoch_order.cache_clear()
    resumed = [step_rows(n, batch_size, seed, epoch * steps + step) for step in range(first, steps)]
    assert all(torch.equal(a, b) for a, b in zip(whole[first:], resumed, strict=True))
    seen = torch.cat(whole)
    assert len(seen.unique()) == len(seen) == steps * batch_size
    assert torch.equal(seen, epoch_order(n, seed, epoch)[: len(seen)])


@few
@given(st.integers(1, 4), st.integers(2, 4), seeds)
def test_ranks_share_every_batch_between_them(ranks, each, seed):
    n, batch_size = 37, ranks * each
    images = torch.arange(n, dtype=torch.uint8).view(-1, 1, 1, 1)
    data = Dataset(images, torch.zeros(n).long(), ("a", "b"))
    config = from_mapping(TrainingConfig, {"batch_size": batch_size, "seed": seed, "epochs": 1})
    like = torch.zeros(())
    for step in range(n // batch_size):
        rows = step_rows(n, batch_size, seed, step)
        parts = [make_batch(data, config, (POSED,), step, like, Share(rank, ranks)) for rank in range(ranks)]
        shared = torch.cat([part.rows for part in parts])
        assert all(len(part) == each for part in parts)
        assert all(torch.equal(data.images[part.rows] / 255, part.images) for part in parts)
        assert torch.equal(shared.sort().values, rows.sort().values)


def test_epochs_and_seeds_have_orders_of_their_own():
    orders = [tuple(epoch_order(50, seed, epoch).tolist()) for seed in range(3) for epoch in range(3)]
    assert len(set(orders)) == 9


def test_batches_that_cannot_be_made_are_refused():
    with pytest.raises(ConfigError, match=r"batch_size: .* 5 .* 6$"):
        check_batches(5, 6)
    with pytest.raises(ConfigError, match=r"batch_size: .*2 processes × 1 parts"):
        check_batches(10, 5, ranks=2)


@few
@given(st.integers(1, 40), st.integers(1, 40))
def test_parts_cover_all_rows_in_order(n, size):
    parts = list(parts_in_order(n, size))
    assert all(0 < len(part) <= size for part in parts)
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


def test_flipping_mirrors_about_half_of_the_pictures_and_nothing_else():
    def images(flip):
        config = make_config(batch_size=8, flip=flip)
        return make_batch(digits(40), config, (POSED,), 0, torch.zeros(()), Share()).images

    plain, flipped = images(False), images(True)
    mirrored = [torch.equal(a.flip(-1), b) for a, b in zip(plain, flipped, strict=True)]
    same = [torch.equal(a, b) for a, b in zip(plain, flipped, strict=True)]
    assert all(m or s for m, s in zip(mirrored, same, strict=True))
    assert 0 < sum(mirrored) < 8
    torch.testing.assert_close(images(True), flipped)


def test_jitter_moves_each_picture_by_a_few_pixels_and_mirrors_at_the_edges():
    def images(jitter, share=None):
        config = make_config(batch_size=32, jitter=jitter)
        return make_batch(digits(40), config, (POSED,), 0, torch.zeros(()), share or Share()).images

    plain, moved = images(0), images(2)
    padded = F.pad(plain, (2, 2, 2, 2), mode="reflect")
    places = []
    for picture, around in zip(moved, padded, strict=True):
        found = [
            (r, c)
            for r in range(5)
            for c in range(5)
            if torch.equal(around[:, r : r + 28, c : c + 28], picture)
        ]
        assert found, "no move of at most two pixels gives this picture"
        places.append(found[0])
    assert len(set(places)) > 8
    halves = [images(2, Share(rank, 2)) for rank in (0, 1)]
    assert torch.equal(torch.stack(halves, 1).flatten(0, 1), moved)
