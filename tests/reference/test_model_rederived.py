"""The model's product, logits and heatmaps against loops over the formulas of method and paper, in NumPy."""

import numpy as np
import pytest
import torch

from torchsite.model import SITE


def bilinear(cells, height, width):
    """H(cells): align_corners=False, edges clamped, one pixel at a time."""
    rows, cols = cells.shape
    pixels = np.zeros((height, width))
    for i in range(height):
        for j in range(width):
            y = min(max((i + 0.5) * rows / height - 0.5, 0), rows - 1)
            x = min(max((j + 0.5) * cols / width - 0.5, 0), cols - 1)
            top, left = int(y), int(x)
            bottom, right = min(top + 1, rows - 1), min(left + 1, cols - 1)
            v, u = y - top, x - left
            pixels[i, j] = (
                (1 - v) * (1 - u) * cells[top, left]
                + (1 - v) * u * cells[top, right]
                + v * (1 - u) * cells[bottom, left]
                + v * u * cells[bottom, right]
            )
    return pixels


def transposed_weight(rows, cols, height, width):
    """Hᵀ1: how much all pixels together take from each cell."""
    weights = np.zeros((rows, cols))
    for r in range(rows):
        for c in range(cols):
            single = np.zeros((rows, cols))
            single[r, c] = 1
            weights[r, c] = bilinear(single, height, width).sum()
    return weights


@pytest.mark.parametrize("shape", [(3, 16, 16), (3, 8, 12), (2, 11, 14)])
def test_logits_and_heatmaps_follow_the_formulas(shape):
    torch.manual_seed(0)
    options = {"depth": 3, "widths": (4, 5, 6), "common": 4}
    model = SITE("pyramid", "lateral", 4, image_shape=shape, extractor_options=options).double().eval()
    images = torch.rand(2, *shape, dtype=torch.float64)
    found = model.explain(images)
    z, w = found.features.numpy(), found.prototypes.numpy()
    depth, rows, cols = model.feature_shape
    height, width = shape[1:]
    weights = transposed_weight(rows, cols, height, width)
    if height % rows == 0 and width % cols == 0:
        np.testing.assert_allclose(weights, height * width / (rows * cols))
    for n in range(2):
        for k in range(4):
            evidence = np.zeros((rows, cols))
            for d in range(depth):
                evidence += w[n, k, d] * z[n, d] / np.sqrt(depth * rows * cols)
            assert found.logits[n, k].item() == pytest.approx(evidence.sum(), abs=1e-12)
            expected = bilinear(evidence / weights, height, width)
            np.testing.assert_allclose(found.heatmaps()[n, k].numpy(), expected, atol=1e-12)


def test_the_identity_compares_pixels_with_prototypes_without_a_scale():
    torch.manual_seed(0)
    model = SITE("identity", "lateral", 3, image_shape=(1, 12, 12)).eval()
    images = torch.rand(2, 1, 12, 12)
    found = model.explain(images)
    assert torch.equal(found.features, images)
    expected = (found.prototypes * images[:, None]).sum((2, 3, 4))
    torch.testing.assert_close(found.logits, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found.heatmaps(), (found.prototypes * images[:, None]).sum(2))
