"""Transforms against a slow resampler in plain Python, and against kornia and scipy.

The slow one is derived from words alone, pixel by pixel, in pixels counted from the centre: "turned by so
many degrees counter-clockwise as seen, then moved right and down by fractions of the shorter side". It shares
no code and no coordinates with the library.
"""

import math

import kornia
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from torchsite.randomness import make_rng
from torchsite.transforms import AffineTransform, SmoothTransform, TransformFamily
from torchsite.transforms.base import MASK_TOLERANCE

seeds = st.integers(0, 2**32)
sizes = st.tuples(st.integers(2, 9), st.integers(2, 9))


def noise(*shape, seed):
    return torch.rand(shape, generator=make_rng(seed, "noise"), dtype=torch.float64)


def resampled(picture, source_of):
    """Bilinear, zero outside: `source_of(x, y)` tells where a pixel comes from, in pixels from the centre."""
    rows, cols = len(picture), len(picture[0])
    middle_x, middle_y = (cols - 1) / 2, (rows - 1) / 2
    result = [[0.0] * cols for _ in range(rows)]
    for row in range(rows):
        for col in range(cols):
            x, y = source_of(col - middle_x, row - middle_y)
            result[row][col] = interpolated(picture, x + middle_x, y + middle_y)
    return torch.tensor(result, dtype=torch.float64)


def interpolated(picture, x, y):
    """The mean of the four pixels around (x, y), each weighted by the area opposite."""
    total = 0.0
    for row in (math.floor(y), math.floor(y) + 1):
        for col in (math.floor(x), math.floor(x) + 1):
            if 0 <= row < len(picture) and 0 <= col < len(picture[0]):
                total += (1 - abs(y - row)) * (1 - abs(x - col)) * picture[row][col]
    return total


def unposed(size, degrees=0.0, right=0.0, down=0.0, scale=1.0, shear=0.0, mirrored=False):
    """Undo, in this order: move, turn, mirror, shear, scale."""
    shorter, angle = min(size), math.radians(degrees)

    def source_of(x, y):
        x, y = x - right * shorter, y - down * shorter
        # y points down, so turning back clockwise as seen is this way round
        x, y = x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)
        x = -x if mirrored else x
        x = x - math.tan(math.radians(shear)) * y
        return x / scale, y / scale

    return source_of


@settings(max_examples=60)
@given(
    size=sizes,
    seed=seeds,
    pose=st.fixed_dictionaries(
        {
            "degrees": st.floats(-180, 180),
            "right": st.floats(-0.5, 0.5),
            "down": st.floats(-0.5, 0.5),
            "scale": st.floats(0.5, 2),
            "shear": st.floats(-40, 40),
            "mirrored": st.booleans(),
        }
    ),
)
def test_affine_transforms_against_loops(size, seed, pose):
    picture = noise(*size, seed=seed)
    transform = (
        AffineTransform.shift(pose["right"], pose["down"])
        @ AffineTransform.rotation(pose["degrees"])
        @ AffineTransform.reflection(pose["mirrored"])
        @ AffineTransform.shear(pose["shear"])
        @ AffineTransform.scale(pose["scale"])
    )
    expected = resampled(picture.tolist(), unposed(size, **pose))
    torch.testing.assert_close(transform(picture[None, None])[0, 0], expected, rtol=0, atol=1e-10)


@settings(max_examples=40)
@given(size=sizes, seed=seeds)
def test_sampled_transforms_against_loops(size, seed):
    """A family draws angles, shifts, scales (by their logarithm), shears and mirrors, in this order."""
    family = TransformFamily(120, 0.3, (0.5, 2.0), 25, reflect=True)
    draws, rng = [], make_rng(seed)
    for _ in range(5):
        draws.append(torch.rand(2, generator=rng, dtype=torch.float64).tolist())
    mirrors = (torch.rand(2, generator=rng) < 0.5).tolist()
    pictures = noise(2, *size, seed=seed)
    moved = family.sample(2, rng=make_rng(seed))(pictures)
    for i in range(2):
        turn, right, down, scale, shear = (draw[i] for draw in draws)
        source_of = unposed_family(size, turn, right, down, scale, shear, mirrors[i])
        torch.testing.assert_close(moved[i], resampled(pictures[i].tolist(), source_of), rtol=0, atol=1e-10)


def unposed_family(size, turn, right, down, scale, shear, mirrored):
    return unposed(
        size,
        degrees=120 * (2 * turn - 1),
        right=0.3 * (2 * right - 1),
        down=0.3 * (2 * down - 1),
        scale=0.5 * 4**scale,
        shear=25 * (2 * shear - 1),
        mirrored=mirrored,
    )


@settings(max_examples=25)
@given(size=sizes, seed=seeds, amplitude=st.floats(0.1, 0.7))
def test_distortions_against_loops(size, seed, amplitude):
    """u_a(p) = Σ c_ak sin(π/2·k·p + φ_ak), and k runs over half of {-2 … 2}², each direction once."""
    transform = SmoothTransform.sample(1, amplitude, make_rng(seed))
    vectors = [(kx, ky) for kx in range(-2, 3) for ky in range(3) if ky > 0 or (ky == 0 and kx > 0)]
    c, phi = transform.coefficients[0].tolist(), transform.phases[0].tolist()
    half = min(size) / 2

    def source_of(x, y):
        x, y = x / half, y / half
        u = [
            sum(
                c[a][i] * math.sin(math.pi / 2 * (kx * x + ky * y) + phi[a][i])
                for i, (kx, ky) in enumerate(vectors)
            )
            for a in range(2)
        ]
        return (x + u[0]) * half, (y + u[1]) * half

    picture = noise(*size, seed=seed)
    expected = resampled(picture.tolist(), source_of)
    torch.testing.assert_close(transform(picture[None])[0], expected, rtol=0, atol=1e-10)


@settings(max_examples=40)
@given(size=sizes, degrees=st.floats(-180, 180), right=st.floats(-0.5, 0.5), down=st.floats(-0.5, 0.5))
def test_masks_against_loops(size, degrees, right, down):
    ones = [[1.0] * size[1] for _ in range(size[0])]
    covered = resampled(ones, unposed(size, degrees, right, down))
    mask = AffineTransform.pose(degrees, right, down).mask(size)[0]
    near_the_threshold = (covered - (1 - MASK_TOLERANCE)).abs() < 1e-5
    assert ((mask == (covered > 1 - MASK_TOLERANCE)) | near_the_threshold).all()


def pixel_matrices(transform, size):
    """The same maps between pixel indices (x, y), as image libraries write them."""
    rows, cols = size
    to_centred = torch.tensor(
        [[1, 0, (1 - cols) / 2], [0, 1, (1 - rows) / 2], [0, 0, 1]], dtype=torch.float64
    )
    to_centred[:2] *= 2 / min(size)
    return torch.linalg.inv(to_centred) @ transform.matrix @ to_centred


AFFINE = TransformFamily(scale=(0.6, 1.6), max_shear=20, reflect=True)


@settings(max_examples=30)
@given(size=st.tuples(st.integers(3, 24), st.integers(3, 24)), seed=seeds)
def test_agrees_with_kornia(size, seed):
    maps = noise(4, 3, *size, seed=seed)
    transform = AFFINE.sample(4, rng=make_rng(seed))
    matrices = pixel_matrices(transform, size)[:, :2]
    # between pixel centres both conventions of the corners agree; kornia's matrices presume this one
    expected = kornia.geometry.transform.warp_affine(maps, matrices, size, align_corners=True)
    torch.testing.assert_close(transform(maps), expected, rtol=0, atol=1e-9)


@settings(max_examples=30)
@given(size=st.tuples(st.integers(3, 24), st.integers(3, 24)), seed=seeds)
def test_agrees_with_scipy(size, seed):
    picture = noise(*size, seed=seed)
    transform = AFFINE.sample(1, rng=make_rng(seed))
    matrix = torch.linalg.inv(pixel_matrices(transform, size))[0].numpy()
    swapped = matrix[[1, 0, 2]][:, [1, 0, 2]]  # scipy counts rows first
    expected = ndimage.affine_transform(picture.numpy(), swapped, order=1, mode="grid-constant")
    np.testing.assert_allclose(transform(picture[None])[0].numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("degrees", [0.0, 37.0, -90.0])
def test_the_loops_know_a_turn_from_its_opposite(degrees):
    """A mark right of the centre goes up when turned counter-clockwise: the oracle itself, by eye."""
    y, x = np.mgrid[-7:8, -7:8]
    picture = np.exp(-((x - 3) ** 2 + y**2) / 2)
    moved = resampled(picture.tolist(), unposed((15, 15), degrees)).numpy()
    weights = moved / moved.sum()
    assert (weights * x).sum() == pytest.approx(3 * math.cos(math.radians(degrees)), abs=0.05)
    assert (weights * -y).sum() == pytest.approx(3 * math.sin(math.radians(degrees)), abs=0.05)
