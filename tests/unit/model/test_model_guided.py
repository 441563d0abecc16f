"""Guided upsampling: all evidence is kept, it keeps to what looks alike, and a wide range is bilinear."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchsite.errors import ConfigError, ShapeError
from torchsite.model.explanation import Explanation, enlarge
from torchsite.model.guided import enlarge_guided
from torchsite.randomness import make_rng


def random_maps(seed, rows=3, cols=4, scale=(4, 2), classes=2, n=2):
    rng = make_rng(seed)
    evidence = torch.randn(n, classes, rows, cols, generator=rng)
    return evidence, torch.rand(n, 3, rows * scale[0], cols * scale[1], generator=rng)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(1, 4),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.sampled_from([1e-4, 0.1, 10.0]),
)
def test_no_evidence_is_lost(seed, rows, cols, scale, sigma):
    evidence, images = random_maps(seed, rows, cols, scale)
    heatmaps = enlarge_guided(evidence.double(), images.double(), sigma)
    assert heatmaps.shape[-2:] == images.shape[-2:]
    torch.testing.assert_close(heatmaps.sum((-2, -1)), evidence.double().sum((-2, -1)))


@pytest.mark.parametrize("scale", [(2, 2), (3, 3), (4, 2), (1, 1)])
def test_where_colours_do_not_matter_it_is_bilinear_inside(scale):
    evidence, images = random_maps(0, 5, 5, scale)
    heatmaps = enlarge_guided(evidence, images, sigma=1e4)
    plain = enlarge(evidence, (images.shape[-2], images.shape[-1]))
    inner = (slice(2 * scale[0], 3 * scale[0]), slice(2 * scale[1], 3 * scale[1]))  # edges are cut, not held
    torch.testing.assert_close(heatmaps[..., *inner], plain[..., *inner])


def test_it_is_its_formula():
    """A loop over cells and pixels in float64."""
    evidence, images = random_maps(1, 2, 3, (2, 2), classes=1, n=1)
    evidence, images = evidence.double(), images.double()
    expected = torch.zeros(4, 6, dtype=torch.float64)
    for r in range(2):
        for c in range(3):
            colour = images[0, :, 2 * r : 2 * r + 2, 2 * c : 2 * c + 2].mean((1, 2))
            share = torch.zeros(4, 6, dtype=torch.float64)
            for i in range(4):
                for j in range(6):
                    tent = max(0, 1 - abs((i + 0.5) / 2 - r - 0.5)) * max(0, 1 - abs((j + 0.5) / 2 - c - 0.5))
                    distance = (images[0, :, i, j] - colour).square().sum()
                    share[i, j] = tent * torch.exp(-distance / (2 * 0.3**2))
            expected += evidence[0, 0, r, c] * share / share.sum()
    torch.testing.assert_close(enlarge_guided(evidence, images, 0.3)[0, 0], expected)


def test_evidence_stays_on_its_side_of_an_edge():
    """A dark and a bright half whose border runs within the cells of the middle column."""
    images = torch.zeros(1, 3, 12, 12)
    images[..., 5:] = 1.0
    evidence = torch.zeros(1, 1, 3, 3)
    evidence[0, 0, 1, 1] = 1.0  # three of the cell's four columns are bright
    guided = enlarge_guided(evidence, images)[0, 0]
    assert guided[:, 5:].sum() > 0.99
    assert enlarge(evidence, (12, 12))[0, 0][:, 5:].sum() < 0.8


def test_explanations_offer_it_and_completeness_holds():
    evidence, images = random_maps(2)
    explanation = Explanation(images, evidence, evidence[:, :, None], evidence, 1.0, ("a", "b"))
    for size in (None, (24, 16), (7, 5)):
        maps = explanation.heatmaps(size, guided=True)
        torch.testing.assert_close(maps.sum((-2, -1)), explanation.logits)
    assert explanation.heatmaps(classes="b", guided=True).shape == (2, 12, 8)


def test_what_does_not_fit_says_so():
    evidence, images = random_maps(3)
    with pytest.raises(ShapeError, match="whole number of pixels for each cell"):
        enlarge_guided(evidence, images[..., :-1])
    with pytest.raises(ConfigError, match="sigma: expected a positive"):
        enlarge_guided(evidence, images, 0.0)
