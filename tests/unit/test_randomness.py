import torch
from hypothesis import given
from hypothesis import strategies as st

from torchsite.randomness import make_rng, uniform

seeds = st.integers(0, 2**32 - 1)
names = st.lists(st.text(max_size=5) | st.integers(0, 100), max_size=3)


def draw(rng):
    return torch.rand(8, generator=rng, dtype=torch.float64)


@given(seed=seeds, stream=names)
def test_the_same_stream_gives_the_same_numbers(seed, stream):
    assert draw(make_rng(seed, *stream)).equal(draw(make_rng(seed, *stream)))


@given(seed=seeds, first=names, second=names)
def test_streams_of_other_names_are_others(seed, first, second):
    if first != second:
        assert not draw(make_rng(seed, *first)).equal(draw(make_rng(seed, *second)))


@given(seed=seeds, other=seeds, stream=names)
def test_other_seeds_give_other_streams(seed, other, stream):
    if seed != other:
        assert not draw(make_rng(seed, *stream)).equal(draw(make_rng(other, *stream)))


def test_names_and_numbers_are_told_apart():
    streams = [make_rng(0, "1"), make_rng(0, 1), make_rng(0, "1", ""), make_rng(0, 1, 0), make_rng(0)]
    assert len({tuple(draw(rng).tolist()) for rng in streams}) == len(streams)


def test_the_numbers_of_a_stream_never_change():
    """Golden values: results of old seeds stay what they were."""
    assert draw(make_rng(0, "order", 1))[:2].tolist() == [0.9374144078073726, 0.20641516869134402]


@given(seed=seeds)
def test_the_global_state_is_left_alone(seed):
    before = torch.get_rng_state()
    uniform(-1, 1, 10, make_rng(seed, "x"))
    assert torch.get_rng_state().equal(before)


@given(low=st.floats(-1e6, 1e6), width=st.floats(0, 1e6), n=st.integers(0, 50), seed=seeds)
def test_uniform_values_lie_in_their_range(low, width, n, seed):
    values = uniform(low, low + width, n, make_rng(seed))
    assert values.shape == (n,)
    assert values.dtype == torch.float64
    assert ((values >= low) & (values <= low + width + 1e-9)).all()


def test_uniform_values_fill_their_range():
    values = uniform(2, 4, 10_000, make_rng(0)).sort().values
    assert float((values - torch.linspace(2, 4, 10_000, dtype=torch.float64)).abs().max()) < 0.05
