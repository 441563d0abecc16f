"""Laws of the objective: the closed form is the expectation, padding never enters, both sides agree."""

from functools import partial

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st

from torchsite.objective.equivariance import equivariance_losses
from torchsite.objective.targets import RunningMeans, class_feature_sums, sample_members
from torchsite.objective.transformation import masked_mean, transformation_loss
from torchsite.randomness import make_rng
from torchsite.transforms import AffineTransform, TransformFamily

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**31)
sides = st.integers(2, 9)
slopes = st.sampled_from([1.0, 2.0])
warps = st.sampled_from(["target", "prototype"])
FAMILY = TransformFamily(scale=(0.7, 1.4), max_shear=20)


def values(seed, *shape):
    return torch.randn(*shape, generator=make_rng(seed, "values", *shape), dtype=torch.float64)


@few
@given(st.integers(-3, 3), sides, slopes, seeds)
def test_on_quarter_turns_both_sides_ask_for_the_same(turns, side, slope, seed):
    raw, targets = values(seed, 3, 2, 2, side, side), values(seed + 1, 2, 2, side, side).sigmoid()
    pose = AffineTransform.rotation(torch.full((3,), 90.0 * turns))
    losses = [
        transformation_loss(raw, targets, pose, slope=slope, warp=warp) for warp in ("target", "prototype")
    ]
    torch.testing.assert_close(*losses, rtol=1e-9, atol=1e-9)
    turned = targets.rot90(turns, (-2, -1)).expand_as(raw)
    direct = torch.nn.functional.binary_cross_entropy_with_logits(slope * raw, turned)
    torch.testing.assert_close(losses[0], direct, rtol=1e-9, atol=1e-9)


@few
@given(st.integers(4, 9), warps, seeds)
def test_what_lies_outside_the_mask_changes_nothing(side, warp, seed):
    raw, targets = values(seed, 3, 2, 1, side, side), values(seed + 1, 3, 2, 1, side, side).sigmoid()
    pose = FAMILY.sample(3, rng=make_rng(seed))
    before = transformation_loss(raw, targets, pose, warp=warp)
    if warp == "target":
        outside = ~pose.mask((side, side))[:, None, None].expand_as(raw)
        raw = raw.masked_fill(outside, torch.nan)
    else:
        outside = ~pose.inverse().mask((side, side))[:, None, None].expand_as(raw)
        targets = targets.masked_fill(outside, torch.nan)
    assert torch.equal(transformation_loss(raw, targets, pose, warp=warp), before)


@few
@given(st.integers(4, 9), seeds)
def test_prototypes_outside_the_mask_get_no_gradient_and_all_others_do(side, seed):
    raw = values(seed, 3, 2, 1, side, side).requires_grad_()
    pose = FAMILY.sample(3, rng=make_rng(seed))
    transformation_loss(raw, values(seed + 1, 2, 1, side, side).sigmoid(), pose).backward()
    assert torch.equal((raw.grad != 0).all((1, 2)), pose.mask((side, side)))


@few
@given(st.integers(4, 9), seeds)
def test_padding_never_enters_the_class_means(side, seed):
    """Features of one value everywhere have that value as their mean, wherever anything was seen."""
    pose = FAMILY.sample(6, rng=make_rng(seed))
    labels = torch.randint(3, (6,), generator=make_rng(seed))
    features = torch.full((6, 2, side, side), 0.7, dtype=torch.float64)
    sums, weights = class_feature_sums(features, labels, pose, 3)
    seen = weights.expand_as(sums) > 0
    torch.testing.assert_close((sums / weights)[seen], torch.full_like(sums, 0.7)[seen], rtol=2e-3, atol=0)
    assert bool((sums[~seen] == 0).all())


@few
@given(sides, st.integers(1, 3), seeds)
def test_perfectly_carried_maps_cost_nothing(side, n_classes, seed):
    first = values(seed, 4, n_classes, side, side)
    carry = TransformFamily(max_shift=0.1).sample(4, rng=make_rng(seed))
    assume = carry.mask((side, side)).any((-2, -1))
    first, carry = first[assume], carry[torch.nonzero(assume).flatten()]
    if len(first):
        assert equivariance_losses(first, carry(first), carry).max().item() == pytest.approx(0, abs=1e-6)


@few
@given(st.integers(1, 4), seeds)
def test_class_sums_of_shards_add_up(n_shards, seed):
    features, pose = values(seed, 8, 2, 5, 5), FAMILY.sample(8, rng=make_rng(seed))
    labels = torch.randint(3, (8,), generator=make_rng(seed))
    whole = class_feature_sums(features, labels, pose, 3)
    shards = torch.arange(8).chunk(n_shards)
    parts = [class_feature_sums(features[rows], labels[rows], pose[rows], 3) for rows in shards]
    for total, pieces in zip(whole, zip(*parts, strict=True), strict=True):
        torch.testing.assert_close(sum(pieces), total)


@pytest.mark.parametrize("warp", ["target", "prototype"])
@pytest.mark.parametrize("seed", range(2))
def test_the_sampled_loss_and_its_gradient_converge_to_the_closed_form(warp, seed):
    """E[BCE(p, F1(x_i))] = BCE(p, E[F1(x_i)]), within five standard errors of the sampled mean."""
    n_classes, n, draws = 3, 4, 800
    members = [torch.arange(5 * i, 5 * i + 3 + i) for i in range(n_classes)]
    features = values(seed, 20, 2, 5, 5).sigmoid()
    raw = values(seed + 1, n, n_classes, 2, 5, 5).requires_grad_()
    pose = TransformFamily().sample(n, rng=make_rng(seed))
    means = torch.stack([features[rows].mean(0) for rows in members])
    closed = transformation_loss(raw, means, pose, slope=2.0, warp=warp)
    (gradient,) = torch.autograd.grad(closed, raw)

    rng, losses, gradients = make_rng(seed, "sampled"), [], []
    for _ in range(draws):
        targets = features[sample_members(members, n, rng)]
        loss = transformation_loss(raw, targets, pose, slope=2.0, warp=warp)
        gradients.append(torch.autograd.grad(loss, raw)[0][0, 1, 0, 2, 2])
        losses.append(loss.detach())
    for samples, expected in ((losses, closed.detach()), (gradients, gradient[0, 1, 0, 2, 2])):
        found = torch.stack(samples)
        error = found.std() / draws**0.5
        assert error > 0
        assert abs(found.mean() - expected) < 5 * error


@pytest.mark.parametrize("warp", ["target", "prototype"])
def test_gradcheck(warp):
    pose = FAMILY.sample(2, rng=make_rng(0))
    raw, targets = values(0, 2, 2, 1, 4, 4).requires_grad_(), values(1, 2, 1, 4, 4).sigmoid()
    assert torch.autograd.gradcheck(
        lambda r: transformation_loss(r, targets, pose, slope=2.0, warp=warp), raw
    )
    maps = [values(seed, 2, 2, 4, 4).requires_grad_() for seed in (2, 3)]
    for centred in (False, True):
        assert torch.autograd.gradcheck(
            partial(equivariance_losses, first_to_second=pose, centred=centred), maps
        )


@few
@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3), sides, seeds)
def test_the_masked_mean_is_the_mean_of_what_the_mask_selects(n, n_classes, depth, side, seed):
    losses = values(seed, n, n_classes, depth, side, side)
    mask = torch.rand(n, side, side, generator=make_rng(seed)) < 0.5
    if mask.any():
        selected = losses[mask[:, None, None].expand_as(losses)]
        torch.testing.assert_close(masked_mean(losses, mask), selected.mean())


# Two processes


def learn(rows, steps=3):
    """The class means after a few steps on the given rows of each batch of eight."""
    source = RunningMeans(3, (2, 5, 5), decay=0.9).double()
    for step in range(steps):
        labels = torch.randint(3, (8,), generator=make_rng(step))
        pose = FAMILY.sample(8, rng=make_rng(step))
        source.learn(values(step, 8, 2, 5, 5)[rows], rows, labels[rows], pose[rows])
    return source(torch.arange(8), make_rng(0))


def process(rank, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    try:
        torch.save(learn(torch.arange(8)[rank::2]), f"{path}.{rank}")
    finally:
        dist.destroy_process_group()


@pytest.mark.skipif(not dist.is_gloo_available(), reason="this torch was built without gloo")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_two_processes_have_the_class_means_of_one(tmp_path):
    import multiprocessing

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torchsite.objective"])
    processes = [
        context.Process(target=process, args=(rank, str(tmp_path / "meet")), daemon=True) for rank in range(2)
    ]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
        assert one.exitcode == 0
    expected = learn(torch.arange(8))
    for rank in range(2):
        found = torch.load(tmp_path / f"meet.{rank}", weights_only=True)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
