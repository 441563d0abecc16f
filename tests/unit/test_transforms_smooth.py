"""Smooth distortions: what is refused, and what is stated about them."""

import pytest
import torch

from torchsite.errors import ConfigError, ShapeError
from torchsite.randomness import make_rng
from torchsite.transforms import SmoothTransform
from torchsite.transforms.smooth import BAND, MAX_AMPLITUDE, wave_vectors


def test_each_direction_of_the_band_has_one_wave():
    waves = wave_vectors()
    assert len(waves) == ((2 * BAND + 1) ** 2 - 1) // 2
    both_ways = {tuple(wave) for wave in torch.cat([waves, -waves]).tolist()}
    assert len(both_ways) == (2 * BAND + 1) ** 2 - 1
    assert float(waves.abs().max()) == pytest.approx(BAND * torch.pi / 2)


def test_a_distortion_that_might_fold_is_refused():
    transform = SmoothTransform.sample(1, MAX_AMPLITUDE, make_rng(0))
    with pytest.raises(ConfigError, match="Lipschitz"):
        SmoothTransform(1.1 * transform.coefficients, transform.phases)
    with pytest.raises(ConfigError, match="Lipschitz"):
        SmoothTransform.sample(2, 0.9, make_rng(0))


def test_coefficients_and_phases_belong_together():
    with pytest.raises(ShapeError):
        SmoothTransform(torch.zeros(1, 2, 12), torch.zeros(1, 2, 3))
    with pytest.raises(ShapeError):
        SmoothTransform(torch.zeros(2, 12), torch.zeros(2, 12))


def test_amplitudes_are_one_per_picture():
    amplitudes = torch.tensor([0.0, 0.2, 0.6], dtype=torch.float64)
    transform = SmoothTransform.sample(3, amplitudes, make_rng(0))
    assert transform.lipschitz().tolist() == pytest.approx(amplitudes.tolist())


def test_no_amplitude_is_the_identity():
    transform = SmoothTransform.sample(2, 0.0, make_rng(0))
    points = torch.rand(2, 3, 3, 2, generator=make_rng(1), dtype=torch.float64)
    assert transform.lookup(points).equal(points)
    assert transform.inverse().lookup(points).equal(points)


def test_the_inverse_of_the_inverse_is_the_same_transform():
    transform = SmoothTransform.sample(2, 0.5, make_rng(0))
    again = transform.inverse().inverse()
    assert not again.inverted
    assert again.coefficients.equal(transform.coefficients)
