"""Families of transforms: defaults, what is refused, words."""

import dataclasses

import pytest
import torch

from torchsite.errors import ConfigError
from torchsite.randomness import make_rng
from torchsite.transforms import AffineTransform, TransformFamily


def test_the_defaults_are_the_ranges_of_the_paper():
    assert TransformFamily() == TransformFamily(90, 0.25, (1, 1), 0, False, 0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_rotation", -1),
        ("max_rotation", 181),
        ("max_rotation", float("nan")),
        ("max_rotation", "90"),
        ("max_rotation", True),
        ("max_rotation", None),
        ("max_shift", -0.1),
        ("max_shift", 1.1),
        ("max_shear", 81),
        ("distortion", 0.71),
        ("distortion", float("inf")),
        ("scale", (0, 1)),
        ("scale", (2, 1)),
        ("scale", (1,)),
        ("scale", (1, 1, 1)),
        ("scale", 1.5),
        ("scale", ("a", "b")),
        ("scale", (1, float("inf"))),
        ("scale", "ab"),
        ("reflect", 1),
        ("reflect", "no"),
    ],
)
def test_values_out_of_range_are_refused_by_name(field, value):
    with pytest.raises(ConfigError, match=f"^{field}: "):
        TransformFamily(**{field: value})


def test_unknown_fields_are_refused_with_the_nearest_known():
    with pytest.raises(ConfigError, match="'max_rotation'"):
        TransformFamily.from_mapping({"max_rotaton": 10})
    with pytest.raises(ConfigError, match="'distortion'"):
        TransformFamily.from_mapping({"distorsion": 0.1})


@pytest.mark.parametrize("values", ["", None, [1], 3, {"max_rotation": "ten"}, {"scale": 2}])
def test_what_is_no_family_is_refused(values):
    with pytest.raises(ConfigError):
        TransformFamily.from_mapping(values)


def test_families_are_frozen_and_hashable():
    family = TransformFamily(scale=[0.5, 2])
    assert {family: 1}[TransformFamily(scale=(0.5, 2.0))] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        family.max_shift = 0.1


def test_families_say_their_range():
    assert str(TransformFamily()) == "±90°, ±25 % shift"
    full = TransformFamily(30, 0.1, (0.5, 2), 10, True, 0.2)
    assert str(full) == "±30°, ±10 % shift, scale 0.5–2, shear ±10°, mirrored, distortion 0.2"


def test_affine_families_draw_affine_transforms():
    family = TransformFamily(scale=(0.5, 2), max_shear=10, reflect=True)
    assert isinstance(family.sample(3, rng=make_rng(0)), AffineTransform)


def test_sampling_uses_the_rng_it_is_given_and_no_other():
    before = torch.get_rng_state()
    rng = make_rng(0)
    first, second = (TransformFamily(reflect=True, distortion=0.1).sample(3, rng=rng) for _ in range(2))
    assert torch.get_rng_state().equal(before)
    assert not first.affine_part().equal(second.affine_part())


def test_reflections_are_fair():
    mirrored = TransformFamily(0, 0, reflect=True).sample(4000, rng=make_rng(0)).affine_part()[:, 0, 0] < 0
    assert float(mirrored.double().mean()) == pytest.approx(0.5, abs=0.05)


def test_samples_are_uniform_in_their_range():
    drawn = TransformFamily(90, 0.25).sample(20_000, rng=make_rng(0)).affine_part()
    right = drawn[:, 0, 2].sort().values / 2
    expected = torch.linspace(-0.25, 0.25, 20_000, dtype=torch.float64)
    assert float((right - expected).abs().max()) < 0.01


@pytest.mark.parametrize("n", [0, 1, 5])
def test_as_many_as_asked_for(n):
    assert (
        len(
            TransformFamily(scale=(0.5, 2), max_shear=5, reflect=True, distortion=0.3).sample(
                n, rng=make_rng(0)
            )
        )
        == n
    )
