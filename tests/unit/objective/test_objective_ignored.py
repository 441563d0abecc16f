"""Ignored regions: no evidence inside, and no picture that tells its class by them."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchsite.data.margins import centre
from torchsite.errors import ConfigError, ShapeError
from torchsite.objective import Draws, Share, Step
from torchsite.objective.ignored import IgnoredRegions, evidence_inside, seen_regions, without_regions
from torchsite.objective.views import POSED, UPRIGHT
from torchsite.randomness import make_rng
from torchsite.training.batches import make_batch
from torchsite.training.fit import make_objective
from training_makers import digits, make_black_box, make_config, make_site, run

few = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 2**31)
TERMS = [{"name": "ignored_regions"}]
CORNER = (slice(None), slice(0, 7), slice(0, 7))


def marked(n=40, every=2):
    """Digits of which every second has a white corner that is to be ignored."""
    data = digits(n)
    regions = torch.zeros(n, 28, 28, dtype=torch.bool)
    regions[CORNER] = (torch.arange(n) % every == 0)[:, None, None]
    return replace(data, images=data.images.masked_fill(regions[:, None], 255), regions=regions)


def batch_of(data, step=0, share=None, **changes):
    config = make_config(batch_size=16, terms=TERMS, **changes)
    return make_batch(data, config, (UPRIGHT, POSED), step, torch.zeros(()), share or Share())


@few
@given(st.integers(2, 9), seeds)
def test_nothing_is_lost_where_no_evidence_is_inside(side, seed):
    evidence = torch.randn(3, 4, side, side, generator=make_rng(seed))
    inside = (torch.rand(3, side, side, generator=make_rng(seed, "inside")) < 0.5).float()
    silent = evidence * (1 - inside)[:, None]
    assert evidence_inside(silent, inside).abs().max() == 0
    assert (evidence_inside(silent + 2 * inside[:, None], inside) == 2 * inside.sum((1, 2))[:, None]).all()


@few
@given(seeds)
def test_the_loss_bounds_what_hiding_the_evidence_does_to_the_logit(seed):
    evidence = torch.randn(3, 4, 6, 6, generator=make_rng(seed))
    inside = torch.rand(3, 6, 6, generator=make_rng(seed, "inside"))
    without = (evidence * (1 - inside)[:, None]).sum((-2, -1))
    fall = (evidence.sum((-2, -1)) - without).abs()
    assert (fall <= evidence_inside(evidence, inside) + 1e-5).all()


def test_parts_of_a_batch_average_to_the_whole_and_ranks_see_what_one_process_sees():
    data, model = marked(), make_site("pyramid").eval()
    objective = make_objective(
        model, data, make_config(batch_size=16, terms=TERMS, views=["upright", "posed"])
    )
    whole = batch_of(data)

    def loss(batch):
        with torch.no_grad():
            return objective(batch).losses["ignored_regions"]

    assert loss(whole) > 0
    for parts in (
        list(whole.parts(4)),
        [batch_of(data, share=Share(rank, 2)) for rank in (0, 1)],
    ):
        torch.testing.assert_close(torch.stack([loss(part) for part in parts]).mean(), loss(whole))
    halves = [batch_of(data, share=Share(rank, 2)) for rank in (0, 1)]
    for name in ("images", "regions"):
        together = torch.stack([getattr(half, name) for half in halves], 1).flatten(0, 1)
        assert torch.equal(together, getattr(whole, name))


def test_the_region_is_never_shown_and_all_that_changed_is_marked():
    data = marked()
    for step in range(2):
        batch = batch_of(data, step)
        own, kept = data.regions[batch.rows], data.images[batch.rows].float() / 255
        changed = (batch.images != kept)[:, 0]
        assert not (changed & ~batch.regions).any()
        assert batch.regions.flatten(1).any(1).all(), "pictures without a region get the place of another's"
        assert (batch.regions >= own).all()
        white = (batch.images[CORNER[0], 0, :7, :7] == 1).all((1, 2))
        has = own.flatten(1).any(1)
        for pictures in (has, ~has):  # pasted in about half of them, whatever they are
            assert 0 < white[pictures].sum() < pictures.sum()


def test_regions_move_as_pictures_do():
    """A picture that is white in its region only shows where its region went: flipped, jittered and posed."""
    n = 16
    regions = torch.zeros(n, 28, 28, dtype=torch.bool)
    regions[:, 5:25, 3:22] = True  # too large to be pasted; the filling is what is white
    images = torch.zeros(n, 1, 28, 28, dtype=torch.uint8)
    images[regions[:, None]] = 255
    data = replace(digits(n), images=images, regions=regions)
    batch = batch_of(data, flip=True, jitter=2, family={"max_rotation": 90, "max_shift": 0.2})
    shown = replace(batch, images=batch.regions[:, None].float()).pictures()
    objective = make_objective(make_site().eval(), data, make_config(batch_size=16, terms=TERMS))
    step = Step(batch, objective.model, objective.model.run(batch.pictures()))
    found = torch.cat([seen_regions(seen, batch) for seen in step.seen])
    assert torch.equal(found, shown[:, 0] > 0.5)
    assert len({tuple(mask.flatten().tolist()) for mask in found}) > n


def test_regions_of_larger_pictures_come_in_with_what_stands_around():
    data = marked(16).with_margin((20, 20))
    assert data.regions.shape[-2:] == (28, 28)
    batch = batch_of(data, family={"max_shift": 0.3})
    model = make_site()
    step = Step(batch, model, model.run(torch.zeros(32, 1, 28, 28)))
    upright, posed = (seen_regions(seen, batch) for seen in step.seen)
    assert torch.equal(upright, centre(batch.regions, (20, 20)))
    assert posed.shape[-2:] == (20, 20)
    assert not torch.equal(upright, posed)


def test_large_regions_are_filled_and_not_pasted():
    images = torch.rand(4, 1, 8, 8, generator=make_rng(0))
    own, theirs = torch.zeros(2, 4, 8, 8, dtype=torch.bool)
    own[0, :6], theirs[:, :6] = True, True
    shown, hidden = without_regions(images, own, 1 + images, theirs, Draws(0, 0, 4), Share())
    assert torch.equal(hidden, own)
    assert torch.equal(shown[1:], images[1:])
    assert shown.max() <= 1


def test_a_run_is_deterministic_and_a_black_box_sees_the_same_pictures(tmp_path):
    data, options = marked(100), {"terms": TERMS, "flip": True, "views": ["upright"], "batch_size": 32}
    first, second = (run(tmp_path / name, data=data, **options) for name in "ab")
    for one, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(one, other)
    run(tmp_path / "box", make_black_box(), data=data, **options)


def test_what_cannot_be_ignored_is_refused():
    for regions in (
        None,
        torch.zeros(40, 28, 28, dtype=torch.bool),
        torch.ones(40, 28, 28, dtype=torch.bool),
    ):
        with pytest.raises(ConfigError):
            IgnoredRegions().memory(make_site(), replace(digits(40), regions=regions))
    with pytest.raises(ShapeError):
        replace(digits(40), regions=torch.zeros(40, 27, 28, dtype=torch.bool))


def test_regions_are_chosen_with_their_pictures():
    data = marked()
    assert torch.equal(data[[3, 4]].regions, data.regions[[3, 4]])
    assert data[1::2].with_regions.tolist() == []
