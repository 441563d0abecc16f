"""Schedules and optimisers."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from torchsite.randomness import make_rng
from torchsite.training.optimisers import Muon, make_optimisers, orthogonalise, schedule
from training_makers import make_config, make_site

few = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**31)


@few
@given(st.sampled_from(["one_cycle", "cosine"]), st.floats(0, 0.9), st.integers(2, 200))
def test_the_rate_rises_to_its_peak_and_falls_to_almost_nothing(kind, warm_up, n_steps):
    config = make_config(schedule=kind, warm_up=warm_up)
    factors = [schedule(config, n_steps)(step) for step in range(n_steps)]
    peak = max(1, round(warm_up * n_steps))
    assert all(0 < factor <= 1 + 1e-9 for factor in factors)
    assert max(factors) == pytest.approx(1)
    assert factors[:peak] == sorted(factors[:peak])
    assert factors[peak:] == sorted(factors[peak:], reverse=True)
    assert schedule(config, n_steps)(n_steps) == pytest.approx(0, abs=1e-12)
    if kind == "one_cycle":
        assert factors == pytest.approx(
            [
                (step + 1) / peak if step < peak else (n_steps - step) / (n_steps - peak)
                for step in range(n_steps)
            ]
        )


@few
@given(st.sampled_from(["one_cycle", "cosine"]), st.floats(0, 0.9), st.integers(2, 40), st.integers(1, 4))
def test_every_cycle_repeats_the_first(kind, warm_up, length, cycles):
    once = make_config(schedule=kind, warm_up=warm_up)
    often = make_config(schedule=kind, warm_up=warm_up, epochs=cycles, cycles=cycles)
    one = [schedule(once, length)(step) for step in range(length)]
    assert [schedule(often, cycles * length)(step) for step in range(cycles * length)] == one * cycles
    assert schedule(often, cycles * length)(cycles * length) == pytest.approx(0, abs=1e-12)


def test_the_cosine_is_half_way_in_the_middle():
    half = schedule(make_config(schedule="cosine", warm_up=0.0), 101)(51)
    assert half == pytest.approx((1 - math.cos(math.pi / 2)) / 2, abs=1e-9)


@few
@given(st.integers(2, 40), st.integers(2, 40), st.floats(1e-6, 1e6), seeds)
def test_orthogonalised_updates_have_singular_values_near_one(rows, cols, scale, seed):
    """For matrices that are not nearly singular: the iteration lifts a singular value only so far."""
    left, _ = torch.linalg.qr(torch.randn(rows, rows, generator=make_rng(seed)))
    right, _ = torch.linalg.qr(torch.randn(cols, cols, generator=make_rng(seed + 1)))
    values = torch.linspace(0.1, 1, min(rows, cols))
    middle = torch.zeros(rows, cols)
    middle.diagonal().copy_(values)
    update = orthogonalise(scale * left @ middle @ right)
    found = torch.linalg.svdvals(update)
    assert found.min() > 0.6
    assert found.max() < 1.3


def test_the_orthogonalised_update_keeps_the_singular_vectors():
    matrix = torch.randn(6, 10, generator=make_rng(0), dtype=torch.float64)
    found = orthogonalise(matrix)
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    core = u.T @ found @ v.T
    torch.testing.assert_close(core, torch.diag(core.diagonal()), rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", [(6, 54), (54, 6), (8, 8), (1, 9)])
def test_orthogonalising_is_the_newton_schulz_iteration_step_by_step(shape):
    matrix = torch.randn(*shape, generator=make_rng(0), dtype=torch.float64)
    x = matrix / matrix.norm()
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * x @ x.T @ x + 2.0315 * x @ x.T @ x @ x.T @ x
    torch.testing.assert_close(orthogonalise(matrix), x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_every_parameter_has_one_optimiser_and_only_kernels_decay(optimiser):
    model = make_site("pyramid")
    config = make_config(optimiser=optimiser, weight_decay=0.1)
    optimisers = make_optimisers(model, config)
    groups = [group for one in optimisers for group in one.param_groups]
    owned = [parameter for group in groups for parameter in group["params"]]
    assert len(owned) == len({id(p) for p in owned}) == len(list(model.parameters()))
    for group in groups:
        assert all((p.ndim > 1) == (group["weight_decay"] > 0) for p in group["params"])
    muon = [p for one in optimisers if isinstance(one, Muon) for g in one.param_groups for p in g["params"]]
    assert bool(muon) == (optimiser == "muon")
    assert all(p.ndim == 4 and p.shape[-1] > 1 for p in muon)


def test_frozen_parameters_are_left_alone():
    model = make_site("pyramid")
    model.feature_extractor.requires_grad_(False)
    owned = {id(p) for g in make_optimisers(model, make_config())[0].param_groups for p in g["params"]}
    assert not owned & {id(p) for p in model.feature_extractor.parameters()}


def test_a_muon_step_moves_against_the_gradient_by_its_learning_rate():
    weight = nn.Parameter(torch.randn(6, 4, 3, 3, generator=make_rng(0)))
    before = weight.detach().clone()
    weight.grad = torch.randn(6, 4, 3, 3, generator=make_rng(1))
    Muon([weight], lr=0.1, momentum=0.0).step()
    moved = before - weight.detach()
    assert (moved * weight.grad).sum() > 0
    assert torch.linalg.svdvals(moved.flatten(1) / 0.1).min() > 0.5


def test_orthogonalising_is_never_rounded_to_half_precision():
    matrix = torch.randn(16, 24, generator=make_rng(0))
    exact = orthogonalise(matrix)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(orthogonalise(matrix), exact)
        half = orthogonalise(matrix.bfloat16())
    assert torch.equal(half, orthogonalise(matrix.bfloat16().float()).bfloat16())
