"""Affine transforms as values: constructors, indexing, errors, gradients."""

import dataclasses

import pytest
import torch

from torchsite.errors import ShapeError
from torchsite.randomness import make_rng
from torchsite.transforms import (
    AffineTransform,
    SmoothTransform,
    Transform,
    TransformFamily,
    angles,
    scales,
    shifts,
)

KINDS = {
    "affine": TransformFamily(scale=(0.8, 1.2), max_shear=10, reflect=True),
    "composed": TransformFamily(distortion=0.4),
}


def sample(kind, n=4, seed=0):
    if kind == "smooth":
        return SmoothTransform.sample(n, 0.4, make_rng(seed))
    if kind == "inverted":
        return SmoothTransform.sample(n, 0.4, make_rng(seed)).inverse()
    return KINDS[kind].sample(n, rng=make_rng(seed))


every_kind = pytest.mark.parametrize("kind", ["affine", "composed", "smooth", "inverted"])


def maps_for(n, *, seed=0, size=(6, 7)):
    return torch.rand(n, 2, *size, generator=make_rng(seed, "maps"), dtype=torch.float64)


# Constructors.


def test_a_float_makes_a_batch_of_one_and_a_tensor_one_per_value():
    assert len(AffineTransform.rotation(30.0)) == 1
    assert len(AffineTransform.rotation(torch.arange(5.0))) == 5
    assert len(AffineTransform.shift(torch.arange(3.0), 0.0)) == 3
    assert len(AffineTransform.shift(0.0, torch.zeros(0))) == 0
    assert len(AffineTransform.identity(7)) == 7
    assert len(AffineTransform.reflection()) == 1


def test_matrices_are_held_in_double_precision():
    assert AffineTransform(torch.eye(3)[None]).matrix.dtype == torch.float64
    assert AffineTransform.rotation(torch.zeros(2)).matrix.dtype == torch.float64


@pytest.mark.parametrize(
    ("transform", "matrix"),
    [
        (AffineTransform.identity(), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (AffineTransform.rotation(90.0), [[0, 1, 0], [-1, 0, 0], [0, 0, 1]]),
        (AffineTransform.shift(0.25, -0.5), [[1, 0, 0.5], [0, 1, -1], [0, 0, 1]]),
        (AffineTransform.scale(2.0), [[2, 0, 0], [0, 2, 0], [0, 0, 1]]),
        (AffineTransform.shear(45.0), [[1, 1, 0], [0, 1, 0], [0, 0, 1]]),
        (AffineTransform.reflection(), [[-1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (AffineTransform.reflection(False), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (AffineTransform.pose(-90.0, 0.5, 0.0), [[0, -1, 1], [1, 0, 0], [0, 0, 1]]),
    ],
)
def test_matrices(transform, matrix):
    expected = torch.tensor([matrix], dtype=torch.float64)
    torch.testing.assert_close(transform.matrix, expected, rtol=0, atol=1e-15)


def test_a_pose_turns_then_shifts():
    degrees, right, down = (torch.rand(5, generator=make_rng(0), dtype=torch.float64) for _ in range(3))
    product = AffineTransform.shift(right, down) @ AffineTransform.rotation(90 * degrees)
    assert AffineTransform.pose(90 * degrees, right, down).matrix.equal(product.matrix)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan")])
def test_scales_are_positive(factor):
    with pytest.raises(ShapeError, match="scale"):
        AffineTransform.scale(factor)


def test_values_must_be_as_many_as_pictures():
    with pytest.raises(ShapeError):
        AffineTransform.shift(torch.zeros(3), torch.zeros(2))


@pytest.mark.parametrize("shape", [(3, 3), (1, 2, 3), (1, 1, 3, 3)])
def test_matrices_have_one_shape(shape):
    with pytest.raises(ShapeError, match=r"\(batch, 3, 3\)"):
        AffineTransform(torch.zeros(shape))


def test_a_singular_matrix_has_no_inverse():
    with pytest.raises(torch.linalg.LinAlgError):
        AffineTransform(torch.zeros(1, 3, 3)).inverse()


# What was drawn can be read off again.


def test_angles_shifts_and_scales_of_known_transforms():
    turned = AffineTransform.rotation(torch.tensor([0.0, 30.0, -150.0, 179.0]))
    assert angles(turned).tolist() == pytest.approx([0, 30, -150, 179])
    mirrored = turned @ AffineTransform.reflection(torch.ones(4, dtype=torch.bool))
    assert angles(mirrored).tolist() == pytest.approx([0, 30, -150, 179])
    assert shifts(AffineTransform.shift(0.3, -0.4)).tolist() == pytest.approx([0.5])
    assert scales(AffineTransform.scale(1.7) @ AffineTransform.reflection()).tolist() == pytest.approx([1.7])
    assert scales(AffineTransform.shear(30.0)).tolist() == pytest.approx([1])


def test_a_distortion_turns_and_shifts_nothing():
    smooth = sample("smooth")
    assert angles(smooth).tolist() == [0] * 4
    assert shifts(smooth).tolist() == [0] * 4
    turned = smooth @ AffineTransform.rotation(torch.full((4,), 20.0))
    assert angles(turned).tolist() == pytest.approx([20] * 4)


# Every kind of transform.


@every_kind
def test_an_index_picks_pictures(kind):
    transform, maps = sample(kind, 5), maps_for(5)
    moved = transform(maps)
    picks = [0, -1, slice(1, 4), slice(None, None, 2), torch.tensor([3, 1]), torch.arange(5) > 2]
    for pick in picks:
        rows = [pick] if isinstance(pick, int) else pick
        picked = transform[pick]
        assert isinstance(picked, Transform)
        torch.testing.assert_close(picked(maps[rows]), moved[rows])
    with pytest.raises(IndexError):
        transform[5]


@every_kind
def test_an_empty_batch_stays_empty(kind):
    none = sample(kind)[:0]
    assert len(none) == 0
    assert none(torch.zeros(0, 3, 4, 4)).shape == (0, 3, 4, 4)
    assert none.inverse().mask((4, 5)).shape == (0, 4, 5)


@every_kind
def test_transforms_cannot_be_changed(kind):
    transform = sample(kind)
    for field in dataclasses.fields(transform):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(transform, field.name, None)


@every_kind
def test_moving_to_a_device_keeps_the_transform(kind):
    transform, maps = sample(kind), maps_for(4)
    assert transform.to("cpu")(maps).equal(transform(maps))
    assert transform.device == torch.device("cpu")


def test_moving_to_a_device_moves_the_matrices():
    transform = sample("affine").to("meta")
    assert transform.matrix.device == transform.device == torch.device("meta")


@every_kind
def test_any_number_of_channel_axes(kind):
    transform, maps = sample(kind), maps_for(4, size=(5, 6))
    moved = transform(maps)
    assert transform(maps[:, 0]).equal(transform(maps[:, :1])[:, 0])
    deep = maps.reshape(4, 1, 2, 1, 5, 6)
    assert transform(deep).equal(moved.reshape(deep.shape))


@every_kind
def test_masks_are_of_the_asked_size(kind):
    mask = sample(kind).mask((5, 8))
    assert mask.dtype == torch.bool
    assert mask.shape == (4, 5, 8)


@pytest.mark.parametrize(("pixels", "covered"), [(0.0, True), (0.0005, True), (0.002, False)])
def test_a_mask_forgives_a_thousandth(pixels, covered):
    """m = T(1) > 1 - 1e-3: the column at the edge counts if less than a thousandth of it is padding."""
    mask = AffineTransform.shift(pixels / 10, 0.0).mask((10, 10))
    assert mask[0, :, 0].tolist() == [covered] * 10
    assert mask[0, :, 1:].all()


@every_kind
def test_the_maps_must_fit(kind):
    transform = sample(kind)
    with pytest.raises(ShapeError, match=r"4 .*\(3, 2, 6, 7\)"):
        transform(maps_for(3))
    with pytest.raises(ShapeError):
        transform(torch.zeros(4, 5))
    with pytest.raises(ShapeError, match=r"torch\.uint8"):
        transform(torch.zeros(4, 1, 5, 5, dtype=torch.uint8))


@every_kind
@pytest.mark.parametrize("other", ["affine", "composed", "smooth"])
def test_only_batches_of_one_length_compose(kind, other):
    assert len(sample(kind) @ sample(other)) == 4
    with pytest.raises(ShapeError):
        sample(kind) @ sample(other, 3)


@every_kind
def test_the_input_is_left_alone(kind):
    maps = maps_for(4)
    before = maps.clone()
    sample(kind)(maps)
    assert maps.equal(before)


@every_kind
def test_maps_get_gradients(kind):
    maps = maps_for(2, size=(4, 3)).requires_grad_()
    assert torch.autograd.gradcheck(sample(kind, 2), maps)


def test_matrices_get_gradients():
    maps = maps_for(2, size=(4, 4))
    matrix = sample("affine", 2).matrix.clone()
    rows = matrix[:, :2].requires_grad_()
    assert torch.autograd.gradcheck(
        lambda top: AffineTransform(torch.cat([top, matrix[:, 2:]], 1))(maps), rows
    )


@pytest.mark.parametrize("degrees", [17.0, -61.0])
def test_angles_and_shifts_get_gradients(degrees):
    maps = maps_for(1, size=(5, 5))
    pose = [
        torch.tensor([value], dtype=torch.float64, requires_grad=True) for value in (degrees, 0.07, -0.03)
    ]
    assert torch.autograd.gradcheck(lambda *values: AffineTransform.pose(*values)(maps), pose)


@pytest.mark.parametrize("inverted", [False, True])
def test_waves_get_gradients(inverted):
    maps, transform = maps_for(1, size=(4, 4)), sample("smooth", 1)
    waves = (transform.coefficients.clone().requires_grad_(), transform.phases.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda c, phi: SmoothTransform(c, phi, inverted)(maps), waves)


def test_frames_made_in_inference_mode_serve_gradients_too():
    size = (13, 17)  # of no other test, so that the frame is made here
    maps = maps_for(1, size=size)
    with torch.inference_mode():
        AffineTransform.rotation(10.0)(maps)
    degrees = torch.tensor([10.0], requires_grad=True)
    AffineTransform.rotation(degrees)(maps).sum().backward()
    assert degrees.grad is not None
