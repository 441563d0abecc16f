"""Tiles add up: the map of a large picture sums to its logits, which are the mean of its tiles'."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchsite.errors import ConfigError, ShapeError
from torchsite.model.tiles import explain_tiled, starts
from training_makers import make_site


@given(st.integers(4, 60), st.integers(1, 20), st.floats(0, 0.9))
def test_tiles_cover_everything(n, side, overlap):
    if n < side:
        n, side = side, n
    begins = starts(n, side, overlap)
    covered = {pixel for begin in begins for pixel in range(begin, begin + side)}
    assert covered == set(range(n))


@settings(max_examples=5, deadline=None)
@given(st.integers(28, 70), st.integers(28, 70))
def test_evidence_sums_to_the_mean_of_the_tiles(rows, cols):
    model = make_site().eval()
    picture = torch.rand(1, 1, rows, cols, generator=torch.Generator().manual_seed(rows * cols))
    found = explain_tiled(model, picture)
    tiles = torch.cat([picture[..., top : top + 28, left : left + 28] for top, left in found.places])
    assert found.evidence.shape == (1, 10, rows, cols)
    with torch.no_grad():
        expected = model(tiles).mean(0, keepdim=True)
    torch.testing.assert_close(found.logits, expected, atol=1e-4, rtol=1e-4)


def test_one_tile_is_the_explanation_itself():
    model, picture = make_site().eval(), torch.rand(1, 1, 28, 28)
    found = explain_tiled(model, picture)
    torch.testing.assert_close(found.evidence, model.explain(picture).heatmaps(), atol=1e-5, rtol=1e-4)


def test_wrong_pictures_are_refused():
    model = make_site()
    for shape in ((2, 1, 28, 28), (1, 3, 28, 28), (1, 1, 20, 40)):
        with pytest.raises(ShapeError):
            explain_tiled(model, torch.rand(shape))
    with pytest.raises(ConfigError, match="overlap"):
        explain_tiled(model, torch.rand(1, 1, 28, 28), overlap=1.0)
