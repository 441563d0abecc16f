"""Laws of the transforms, for any angle, size, number of channels and family."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import avg_pool2d

from smooth_pictures import SmoothPictures, interpolation_error
from torchsite.configs import to_mapping
from torchsite.randomness import make_rng
from torchsite.transforms import AffineTransform, SmoothTransform, TransformFamily, angles, scales, shifts
from torchsite.transforms.base import MASK_TOLERANCE
from torchsite.transforms.smooth import MAX_AMPLITUDE, RESIDUAL, wave_vectors

seeds = st.integers(0, 2**32)
sides = st.integers(2, 20)
dtypes = st.sampled_from([torch.float32, torch.float64])
RIGID = TransformFamily()
AFFINE = TransformFamily(scale=(0.7, 1.4), max_shear=20, reflect=True)
EVERYTHING = TransformFamily(scale=(0.8, 1.25), max_shear=10, reflect=True, distortion=0.3)
families = st.sampled_from([RIGID, AFFINE, EVERYTHING, TransformFamily(max_shift=0, distortion=0.5)])


def noise(*shape, seed, dtype=torch.float64):
    return torch.rand(shape, generator=make_rng(seed, "noise"), dtype=torch.float64).to(dtype)


def rounding(maps):
    """What rounding of the sampling points may do: a few units in the last place, as many as pixels."""
    return 8 * torch.finfo(maps.dtype).eps * max(maps.shape[-2:])


def assert_near(found, expected, bound):
    assert found.shape == expected.shape
    assert float((found - expected).abs().max()) <= bound


# Exact on the lattice.


@given(turns=st.integers(-9, 9), side=sides, channels=st.integers(1, 4), dtype=dtypes, seed=seeds)
def test_a_quarter_turn_is_rot90(turns, side, channels, dtype, seed):
    maps = noise(2, channels, side, side, seed=seed, dtype=dtype)
    transform = AffineTransform.rotation(torch.full((2,), 90.0 * turns))
    assert_near(transform(maps), torch.rot90(maps, turns, (-2, -1)), rounding(maps))
    assert transform.mask((side, side)).all()


@given(rows=sides, cols=sides, dtype=dtypes, seed=seeds)
def test_a_reflection_is_a_flip(rows, cols, dtype, seed):
    maps = noise(2, 3, rows, cols, seed=seed, dtype=dtype)
    transform = AffineTransform.reflection(torch.tensor([True, False]))
    expected = torch.stack([maps[0].flip(-1), maps[1]])
    assert_near(transform(maps), expected, rounding(maps))


@given(
    rows=sides, cols=sides, right=st.integers(-21, 21), down=st.integers(-21, 21), dtype=dtypes, seed=seeds
)
def test_a_shift_by_whole_pixels_is_exact(rows, cols, right, down, dtype, seed):
    maps = noise(1, 2, rows, cols, seed=seed, dtype=dtype)
    shorter = min(rows, cols)
    transform = AffineTransform.shift(right / shorter, down / shorter)
    kept = torch.ones(1, rows, cols, dtype=torch.bool)
    expected = torch.zeros_like(maps)
    for row in range(rows):
        for col in range(cols):
            inside = 0 <= row - down < rows and 0 <= col - right < cols
            kept[0, row, col] = inside
            if inside:
                expected[..., row, col] = maps[..., row - down, col - right]
    assert_near(transform(maps), expected, rounding(maps) * (1 + (abs(right) + abs(down)) / shorter))
    assert transform.mask((rows, cols)).equal(kept)


@given(
    short=st.integers(2, 9),
    longer_by=st.integers(0, 4),
    upright=st.booleans(),
    turns=st.integers(-4, 4),
    seed=seeds,
)
def test_pictures_that_are_not_square_turn_rigidly(short, longer_by, upright, turns, seed):
    long = short + 2 * longer_by  # the same parity: pixel centres fall on pixel centres
    size = (long, short) if upright else (short, long)
    maps = noise(1, 1, *size, seed=seed)
    moved = AffineTransform.rotation(90.0 * turns)(maps)
    middle = (..., slice(longer_by, longer_by + short), slice(None))
    if not upright:
        middle = (..., slice(None), slice(longer_by, longer_by + short))
    assert_near(moved[middle], torch.rot90(maps[middle], turns, (-2, -1)), rounding(maps))


@given(degrees=st.floats(-720, 720), right=st.floats(-1, 1), down=st.floats(-1, 1), seed=seeds)
def test_poses_keep_distances(degrees, right, down, seed):
    points = noise(1, 3, 3, 2, seed=seed)
    looked_up = AffineTransform.pose(degrees, right, down).lookup(points)
    distances = [torch.cdist(p.reshape(-1, 2), p.reshape(-1, 2)) for p in (points, looked_up)]
    assert_near(distances[1], distances[0], 1e-7)


# Inverse and composition.


def stretch(transform):
    """‖A⁻¹‖: how much faster the moved picture changes than the picture."""
    return float(torch.linalg.matrix_norm(torch.linalg.inv(transform.matrix[:, :2, :2]), ord=2).max())


@given(
    seed=seeds, family=st.sampled_from([RIGID, AFFINE]), rows=st.integers(12, 40), cols=st.integers(12, 40)
)
def test_the_inverse_undoes_within_the_mask(seed, family, rows, cols):
    """|T⁻¹Tf - f| ≤ h²/4·‖H‖·(1 + ‖A⁻¹‖²): one error for each resampling, the second of the moved picture."""
    size, pictures = (rows, cols), SmoothPictures.draw(3, seed)
    transform = family.sample(3, rng=make_rng(seed))
    back, maps = transform.inverse(), pictures(size)
    valid = back(transform(torch.ones(3, 1, *size))) > 1 - MASK_TOLERANCE
    bound = interpolation_error(size, pictures.bend * (1 + stretch(transform) ** 2))
    bound += MASK_TOLERANCE * pictures.height
    assert_near(back(transform(maps)) * valid, maps * valid, bound)


@settings(max_examples=30)
@given(seed=seeds, amplitude=st.floats(0.05, MAX_AMPLITUDE))
def test_the_inverse_of_a_distortion_undoes_within_the_mask(seed, amplitude):
    """As above; the second derivatives of f(p + u(p)) are at most (1 + L)²‖H‖ + |∇f|·‖D²u‖."""
    size, pictures = (32, 32), SmoothPictures.draw(2, seed)
    transform = SmoothTransform.sample(2, amplitude, make_rng(seed))
    back, maps = transform.inverse(), pictures(size)
    valid = back(transform(torch.ones(2, 1, *size))) > 1 - MASK_TOLERANCE
    bend = (1 + amplitude) ** 2 * pictures.bend + pictures.slope * bend_of_displacement(transform)
    bound = interpolation_error(size, pictures.bend + bend) + MASK_TOLERANCE * pictures.height
    assert_near(back(transform(maps)) * valid, maps * valid, bound)


def bend_of_displacement(transform):
    rows = (transform.coefficients.abs() * wave_vectors().norm(dim=1) ** 2).sum(-1)
    return float(rows.norm(dim=-1).max())


@given(seed=seeds, family=families)
def test_the_inverse_undoes_every_point(seed, family):
    transform = family.sample(4, rng=make_rng(seed))
    points = 4 * noise(4, 5, 6, 2, seed=seed) - 2
    # the inverse of a distortion is found to RESIDUAL; scale and shear may enlarge that
    assert_near(transform.inverse().lookup(transform.lookup(points)), points, 10 * RESIDUAL)
    assert_near(transform.lookup(transform.inverse().lookup(points)), points, 10 * RESIDUAL)


@given(seed=seeds, first=families, second=families)
def test_composition_looks_up_in_turn(seed, first, second):
    rng = make_rng(seed)
    inner, outer = first.sample(3, rng=rng), second.sample(3, rng=rng)
    points = 2 * noise(3, 4, 4, 2, seed=seed) - 1
    both = outer @ inner
    assert_near(both.lookup(points), inner.lookup(outer.lookup(points)), 1e-10)
    assert_near(both.inverse().lookup(points), outer.inverse().lookup(inner.inverse().lookup(points)), 1e-9)
    assert_near(both.affine_part(), outer.affine_part() @ inner.affine_part(), 1e-12)


@given(seed=seeds, size=st.tuples(st.integers(16, 32), st.integers(16, 32)))
def test_composition_moves_in_turn(seed, size):
    """(T U) f = T (U f) to three errors of interpolation: one on the left, two on the right."""
    rng, pictures = make_rng(seed), SmoothPictures.draw(2, seed)
    outer, inner = (TransformFamily(max_shift=0.1).sample(2, rng=rng) for _ in range(2))
    maps, ones = pictures(size), torch.ones(2, 1, *size)
    both = outer @ inner
    valid = (outer(inner(ones)) > 1 - MASK_TOLERANCE) & both.mask(size)[:, None]
    bound = 3 * interpolation_error(size, pictures.bend) + 2 * MASK_TOLERANCE * pictures.height
    assert_near(both(maps) * valid, outer(inner(maps)) * valid, bound)


@given(seed=seeds, turns=st.tuples(st.integers(-3, 3), st.integers(-3, 3)), mirror=st.booleans(), side=sides)
def test_composition_is_exact_on_the_lattice(seed, turns, mirror, side):
    maps = noise(1, 2, side, side, seed=seed)
    inner = AffineTransform.rotation(90.0 * turns[0])
    outer = AffineTransform.rotation(90.0 * turns[1]) @ AffineTransform.reflection(mirror)
    assert_near((outer @ inner)(maps), outer(inner(maps)), rounding(maps))


# Batches, masks, resolutions.


@given(seed=seeds, family=families, n=st.integers(2, 6), dtype=dtypes)
def test_no_picture_affects_another(seed, family, n, dtype):
    transform = family.sample(n, rng=make_rng(seed))
    maps = noise(n, 2, 9, 11, seed=seed, dtype=dtype)
    together = transform(maps)
    for i in range(n):
        alone = transform[i](maps[i : i + 1])
        assert_near(alone, together[i : i + 1], rounding(maps))
        others_spoilt = torch.full_like(maps, math.nan)
        others_spoilt[i] = maps[i]
        assert transform(others_spoilt)[i].equal(together[i])


@given(seed=seeds, family=families, rows=sides, cols=sides)
def test_masks_are_warped_ones(seed, family, rows, cols):
    transform = family.sample(3, rng=make_rng(seed))
    moved = transform(torch.ones(3, 2, rows, cols, dtype=torch.float64))
    near_the_threshold = (moved - (1 - MASK_TOLERANCE)).abs() < 1e-5
    agrees = (moved > 1 - MASK_TOLERANCE) == transform.mask((rows, cols))[:, None]
    assert (agrees | near_the_threshold).all()


@given(seed=seeds, family=families, rows=sides, cols=sides)
def test_within_the_mask_no_padding_enters(seed, family, rows, cols):
    """Pictures that differ only beyond the frame agree: a constant stays that constant."""
    transform = family.sample(2, rng=make_rng(seed))
    level = torch.full((2, 1, rows, cols), 5.0)
    valid = transform.mask((rows, cols))[:, None]
    assert_near(transform(level) * valid, level * valid, 5 * MASK_TOLERANCE + 1e-5)


@given(turns=st.integers(-4, 4), mirror=st.booleans(), half=st.integers(1, 10), dtype=dtypes, seed=seeds)
def test_pooling_commutes_with_the_lattice(turns, mirror, half, dtype, seed):
    maps = noise(1, 3, 2 * half, 2 * half, seed=seed, dtype=dtype)
    transform = AffineTransform.rotation(90.0 * turns) @ AffineTransform.reflection(mirror)
    assert_near(avg_pool2d(transform(maps), 2), transform(avg_pool2d(maps, 2)), rounding(maps))


@given(seed=seeds, rows=st.integers(8, 24), cols=st.integers(8, 24))
def test_pooling_commutes_on_smooth_pictures(seed, rows, cols):
    """Both sides are f(T⁻¹p) but for one interpolation at h (1), one at 2h (4), and two poolings (1 each)."""
    size, pictures = (2 * rows, 2 * cols), SmoothPictures.draw(3, seed)
    transform = RIGID.sample(3, rng=make_rng(seed))
    maps = pictures(size)
    valid = (avg_pool2d(transform.mask(size).double(), 2) == 1) & transform.mask((rows, cols))
    bound = 7 * interpolation_error(size, pictures.bend) + 2 * MASK_TOLERANCE * pictures.height
    pooled_after, pooled_before = avg_pool2d(transform(maps), 2), transform(avg_pool2d(maps, 2))
    assert_near(pooled_after * valid[:, None], pooled_before * valid[:, None], bound)


@given(seed=seeds, family=families, rows=sides, cols=sides, dtype=dtypes)
def test_the_fast_grid_is_the_lookup(seed, family, rows, cols, dtype):
    transform = family.sample(3, rng=make_rng(seed))
    generic = super(AffineTransform, AffineTransform.identity())._grid.__func__
    fast, slow = transform._grid((rows, cols), dtype), generic(transform, (rows, cols), torch.float64)
    assert fast.dtype == dtype
    assert_near(fast.double(), slow, 4 * torch.finfo(dtype).eps * max(1.0, float(slow.abs().max())))


@given(seed=seeds, family=families)
def test_single_and_double_precision_agree(seed, family):
    transform, maps = family.sample(3, rng=make_rng(seed)), SmoothPictures.draw(3, seed)((24, 24))
    valid = transform.mask((24, 24))[:, None]
    assert_near(transform(maps.float()).double() * valid, transform(maps) * valid, 1e-4)
    assert transform(maps.float()).dtype == torch.float32


# Distortions.


@given(seed=seeds, amplitude=st.floats(0, MAX_AMPLITUDE), n=st.integers(1, 4))
def test_the_inverse_of_a_distortion_has_the_stated_residual(seed, amplitude, n):
    transform = SmoothTransform.sample(n, amplitude, make_rng(seed))
    points = 4 * noise(n, 6, 6, 2, seed=seed) - 2
    found = transform.inverse().lookup(points)
    assert_near(found + transform.displacement(found), points, RESIDUAL)


@given(seed=seeds, amplitude=st.floats(0.01, MAX_AMPLITUDE))
def test_the_lipschitz_bound_holds(seed, amplitude):
    transform = SmoothTransform.sample(3, amplitude, make_rng(seed))
    assert transform.lipschitz().tolist() == pytest.approx([amplitude] * 3)
    points, others = (4 * noise(3, 8, 8, 2, seed=seed + k) - 2 for k in range(2))
    close = points + 1e-3 * (others - points)
    for second in (others, close):
        moved = (transform.displacement(points) - transform.displacement(second)).norm(dim=-1)
        assert (moved <= (amplitude + 1e-9) * (points - second).norm(dim=-1)).all()


@settings(max_examples=20)
@given(seed=seeds)
def test_a_distortion_keeps_the_orientation(seed):
    """det D(p + u(p)) > 0 everywhere: nothing folds over."""
    transform = SmoothTransform.sample(2, MAX_AMPLITUDE, make_rng(seed))
    points = (2 * noise(2, 8, 8, 2, seed=seed) - 1).requires_grad_()
    looked_up = transform.lookup(points)
    rows = [torch.autograd.grad(looked_up[..., a].sum(), points, retain_graph=True)[0] for a in range(2)]
    assert (torch.linalg.det(torch.stack(rows, dim=-2)) > 0).all()


# Families.

family_values = st.builds(
    TransformFamily,
    max_rotation=st.floats(0, 180),
    max_shift=st.floats(0, 1),
    scale=st.tuples(st.floats(0.1, 1), st.floats(1, 10)),
    max_shear=st.floats(0, 80),
    reflect=st.booleans(),
    distortion=st.floats(0, MAX_AMPLITUDE),
)


@given(family=family_values)
def test_families_survive_json(family):
    again = TransformFamily.from_mapping(json.loads(json.dumps(to_mapping(family))))
    assert again == family
    assert hash(again) == hash(family)
    assert str(again) == str(family)


@given(family=family_values, seed=seeds, n=st.integers(1, 8))
def test_the_same_seed_gives_the_same_transforms(family, seed, n):
    points = 2 * noise(n, 3, 3, 2, seed=seed) - 1
    first, second = (family.sample(n, rng=make_rng(seed)).lookup(points) for _ in range(2))
    assert first.equal(second)


@given(seed=seeds, n=st.integers(1, 5), size=st.tuples(sides, sides), dtype=dtypes)
def test_the_family_of_one_leaves_pictures_as_they_are(seed, n, size, dtype):
    transform = TransformFamily.none().sample(n, rng=make_rng(seed))
    maps = noise(n, 2, *size, seed=seed, dtype=dtype)
    assert_near(transform(maps), maps, rounding(maps))
    assert transform.mask(size).all()


@given(seed=seeds, n=st.integers(1, 20), reflect=st.booleans(), distortion=st.sampled_from([0.0, 0.3]))
def test_parameters_are_recovered(seed, n, reflect, distortion):
    """A family draws angles, shifts, then scales; measures read them off again."""
    family = TransformFamily(170, 0.4, (0.5, 2.0), reflect=reflect, distortion=distortion)
    transform = family.sample(n, rng=make_rng(seed))
    draws = torch.rand(4, n, generator=make_rng(seed), dtype=torch.float64)
    degrees, right, down = 170 * (2 * draws[0] - 1), *(0.4 * (2 * draws[1:3] - 1))
    assert angles(transform).tolist() == pytest.approx(degrees.tolist(), abs=1e-9)
    assert shifts(transform).tolist() == pytest.approx(torch.hypot(right, down).tolist(), abs=1e-12)
    assert scales(transform).tolist() == pytest.approx((0.5 * 4 ** draws[3]).tolist())


@given(family=family_values, seed=seeds)
def test_samples_stay_within_the_family(family, seed):
    transform = TransformFamily(
        family.max_rotation,
        family.max_shift,
        family.scale,
        reflect=family.reflect,
        distortion=family.distortion,
    ).sample(50, rng=make_rng(seed))
    assert (angles(transform).abs() <= family.max_rotation + 1e-9).all()
    assert (shifts(transform) <= math.sqrt(2) * family.max_shift + 1e-12).all()
    assert (scales(transform) >= family.scale[0] * (1 - 1e-9)).all()
    assert (scales(transform) <= family.scale[1] * (1 + 1e-9)).all()
