import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from experiments.bam.dataset import _draw
from torchsite.data import Dataset, batches, to_float
from torchsite.data.folders import held_out
from torchsite.data.formats import read_idx
from torchsite.errors import DataError
from torchsite.randomness import make_rng

seeds = st.integers(0, 2**32)


def numbered(n):
    """Picture i shows the number i, in two bytes."""
    rows = torch.arange(n)
    images = torch.stack([rows // 256, rows % 256], 1).to(torch.uint8).reshape(n, 2, 1, 1)
    return Dataset(images, rows % 3, ("a", "b", "c"))


def numbers(images):
    return (images[:, 0, 0, 0] * 255).round() * 256 + (images[:, 1, 0, 0] * 255).round()


@given(n=st.integers(0, 600), batch_size=st.integers(1, 700), seed=seeds)
def test_shuffled_batches_are_a_permutation_that_keeps_labels(n, batch_size, seed):
    parts = list(batches(numbered(n), batch_size, rng=make_rng(seed)))
    seen = torch.cat([numbers(images) for images, _ in parts]).long() if parts else torch.empty(0).long()
    labels = torch.cat([labels for _, labels in parts]) if parts else seen
    assert sorted(seen.tolist()) == list(range(n))
    assert torch.equal(labels, seen % 3)
    assert all(len(images) == batch_size for images, _ in parts[:-1])


@given(n=st.integers(1, 300), batch_size=st.integers(1, 64), seed=seeds)
def test_the_same_seed_gives_the_same_batches(n, batch_size, seed):
    first, again = (list(batches(numbered(n), batch_size, rng=make_rng(seed))) for _ in range(2))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(first, again, strict=True))


@given(n=st.integers(1, 50), data=st.data())
def test_selecting_twice_is_selecting_once(n, data):
    outer = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=20))
    inner = data.draw(st.lists(st.integers(0, len(outer) - 1), max_size=20))
    twice = numbered(n)[outer][inner]
    assert torch.equal(twice.images, numbered(n)[[outer[i] for i in inner]].images)


@given(value=st.integers(0, 255))
def test_float_images_remember_their_bytes(value):
    pixels = torch.tensor([value], dtype=torch.uint8)
    assert (to_float(pixels) * 255).round().byte() == pixels


@given(array=arrays(np.uint8, array_shapes(min_dims=1, max_dims=3, max_side=7)))
@settings(max_examples=50)
def test_idx_files_round_trip_and_every_cut_is_noticed(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("idx") / "file"
    content = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    path.write_bytes(content)
    assert np.array_equal(read_idx(path, array.ndim), array)
    for cut in {0, 1, 4, len(content) // 2, len(content) - 1}:
        path.write_bytes(content[:cut])
        with pytest.raises(DataError, match="fetch it again"):
            read_idx(path, array.ndim)


@given(labels=st.lists(st.integers(0, 4), min_size=2, max_size=200), share=st.floats(0.05, 0.9), seed=seeds)
def test_every_class_gives_its_share_and_keeps_one(labels, share, seed):
    chosen = held_out(labels, list(range(len(labels))), share, make_rng(seed))
    for label in set(labels):
        total = labels.count(label)
        given_away = sum(labels[row] == label for row in chosen)
        assert given_away == min(total - 1, max(1, round(share * total)))


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), min_size=2, max_size=100), seed=seeds)
def test_groups_are_never_torn_apart(rows, seed):
    labels, groups = zip(*rows, strict=True)
    chosen = held_out(labels, groups, 0.3, make_rng(seed))
    assert not {groups[row] for row in chosen} & {
        groups[row] for row in range(len(rows)) if row not in chosen
    }
    assert all(
        any(labels[row] == label and row not in chosen for row in range(len(rows))) for label in set(labels)
    )


@given(n_available=st.integers(1, 20), n=st.integers(1, 90), seed=seeds)
def test_drawing_repeats_nothing_before_all_came(n_available, n, seed):
    drawn = _draw(n_available, n, make_rng(seed)).tolist()
    for start in range(0, n, n_available):
        turn = drawn[start : start + n_available]
        assert len(set(turn)) == len(turn)
