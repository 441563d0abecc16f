"""Regions: outlines have the area of their pixels, the share that was asked for is held, files are valid."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from torchsite.errors import ConfigError
from torchsite.model.regions import (
    Placement,
    components,
    fitted_placement,
    outlines,
    signed_area,
    strongest_regions,
    to_geojson,
)

masks = arrays(bool, st.tuples(st.integers(1, 7), st.integers(1, 7)))


@settings(max_examples=30)
@given(masks)
def test_components_are_a_partition_and_outlines_have_their_area(mask):
    parts = list(components(mask))
    assert np.array_equal(sum((part.astype(int) for part in parts), np.zeros(mask.shape, int)), mask)
    for part in parts:
        rings = outlines(part)
        assert sum(map(signed_area, rings)) == part.sum()
        assert signed_area(rings[0]) > 0
        assert all(ring[0] == ring[-1] for ring in rings)


def test_a_ring_of_pixels_has_a_hole():
    mask = np.ones((3, 3), bool)
    mask[1, 1] = False
    outer, hole = outlines(mask)
    assert (signed_area(outer), signed_area(hole)) == (9, -1)


@given(st.integers(0, 10_000), st.floats(0.1, 1))
def test_regions_hold_the_share_that_was_asked_for(seed, share):
    heatmap = torch.randn(6, 8, generator=torch.Generator().manual_seed(seed))
    regions = strongest_regions(heatmap, share, least=0.0)
    held = sum(region.share for region in regions)
    assert held >= share - 1e-6
    least = min(float(heatmap[torch.from_numpy(region.mask)].min()) for region in regions)
    others = ~torch.from_numpy(np.any([region.mask for region in regions], axis=0))
    assert not (heatmap[others] > least).any()


def test_nothing_for_the_class_is_no_region():
    assert strongest_regions(-torch.ones(4, 4)) == []
    with pytest.raises(ConfigError, match="share"):
        strongest_regions(torch.ones(4, 4), 0.0)


def test_coordinates_are_those_of_the_file():
    heatmap = torch.zeros(8, 8)
    heatmap[2, 3] = 1.0
    placement = fitted_placement((40, 16), (3, 8, 8))  # the centre square of 16 × 16, shrunk by two
    assert placement == Placement(12.0, 0.0, 2.0)
    (feature,) = to_geojson(strongest_regions(heatmap), placement, {"class": "a"})["features"]
    xs, ys = zip(*feature["geometry"]["coordinates"][0], strict=True)
    assert (min(xs), max(xs), min(ys), max(ys)) == (18, 20, 4, 6)
