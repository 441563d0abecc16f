"""In which views pictures are seen, and that nothing counts as evidence where nothing is seen."""

import pytest
import torch

from torchsite.errors import ConfigError
from torchsite.objective import (
    BlackBoxObjective,
    Draws,
    EquivarianceTerm,
    Share,
    SiteObjective,
    TransformationTerm,
)
from torchsite.objective.batch import show_batch
from torchsite.objective.equivariance import equivariance_losses
from torchsite.objective.views import POSED, UPRIGHT, VIEWS, HiddenView, join_views, what_is_shown
from torchsite.randomness import make_rng
from torchsite.training import fit
from torchsite.transforms import AffineTransform, TransformFamily, angles
from training_makers import digits, equivariance, make_black_box, make_config, make_site, transformation


def shifted(n: int) -> AffineTransform:
    """A quarter of the frame to the right: the left quarter shows nothing."""
    return AffineTransform.shift(torch.full((n,), 0.25), torch.zeros(n))


@pytest.mark.parametrize("hidden", [0.1, 0.25, 0.6])
@pytest.mark.parametrize("size", [(40, 40), (32, 64)])
def test_one_rectangle_of_the_asked_share_is_hidden(hidden, size):
    shown = what_is_shown(200, size, hidden, make_rng(0, "hiding"))
    missing = ~shown
    assert missing.float().mean().item() == pytest.approx(hidden, rel=0.05)
    rows, cols = missing.any(2), missing.any(1)
    assert torch.equal(missing, rows[:, :, None] & cols[:, None, :]), "not a rectangle of rows and columns"
    assert rows.any(0)[1:-1].all(), "some row is never hidden"
    assert cols.any(0)[1:-1].all(), "some column is never hidden"
    assert torch.equal(shown, what_is_shown(200, size, hidden, make_rng(0, "hiding")))


def test_nothing_need_be_hidden():
    assert what_is_shown(3, (8, 8), 0.0, make_rng(0, "hiding")).all()


def test_what_is_not_seen_must_give_no_evidence():
    torch.manual_seed(0)
    first, pose = torch.randn(4, 3, 16, 16), shifted(4)
    shown = what_is_shown(4, (16, 16), 0.25, make_rng(0, "hiding"))
    covered = pose.mask((16, 16))
    honest = pose(first) * (shown & covered)[:, None]
    assert equivariance_losses(first, honest, pose, shown=shown.float()).max().item() == pytest.approx(
        0, abs=1e-6
    )
    for unseen in (~shown, ~covered):
        assert unseen.any()
        false = honest + unseen[:, None]
        assert equivariance_losses(first, false, pose, shown=shown.float()).min().item() > 0.05
    beyond = pose(first) * covered[:, None] + 9 * ~covered[:, None]
    assert equivariance_losses(first, beyond, pose).max().item() == pytest.approx(0, abs=1e-6), (
        "left out by default"
    )


def shown(terms, model=None, own=("upright",), n=8, share=None, images=None, step=0):
    """A batch of random pictures in the views that the terms need."""
    model = model or make_site()
    objective = SiteObjective(model, digits(20), terms, views=[VIEWS[name] for name in own])
    images = torch.rand(n, 1, 28, 28, generator=make_rng(0)) + 0.1 if images is None else images
    rows, labels = torch.arange(n), torch.zeros(n).long()
    draws, share = Draws(0, step, n), share or Share()
    return show_batch(rows, images, labels, objective.views, draws, TransformFamily(), share)


HIDDEN = EquivarianceTerm(unseen="silent", hidden=0.3)


def test_only_the_posed_view_is_hidden_and_parts_together_are_the_whole():
    batch = shown([HIDDEN])
    upright, posed = batch.pictures().chunk(2)
    mask = what_is_shown(8, (28, 28), 0.3, batch.draws.rng("hidden"))
    torch.testing.assert_close(upright, batch.images)
    torch.testing.assert_close(posed, batch.poses[1](batch.images) * mask[:, None])
    parts = [part.pictures().chunk(2) for part in batch.parts(4)]
    torch.testing.assert_close(torch.cat([second for _, second in parts]), posed)


def test_views_are_derived_from_what_the_terms_compare():
    names = {
        ("posed",): [],
        ("upright", "posed"): [EquivarianceTerm()],
    }
    for expected, terms in names.items():
        batch = shown(terms, own=("posed",))
        assert tuple(one.view.name for one in batch.shown) == expected
    upright, posed = shown([]).poses[0], shown([], own=("upright", "posed")).poses[1]
    images = torch.rand(8, 1, 28, 28)
    torch.testing.assert_close(upright(images), images)
    assert not torch.allclose(posed(images), images, atol=0.1)


def test_poses_follow_from_seed_and_step_and_are_shared_out():
    first, again, later = (shown([], own=("posed",), step=step).poses[0] for step in (0, 0, 1))
    torch.testing.assert_close(angles(first), angles(again))
    assert not torch.allclose(angles(first), angles(later))
    odd = shown([], own=("posed",), share=Share(1, 2))
    torch.testing.assert_close(angles(odd.poses[0]), angles(first)[1::2])


def test_the_black_box_sees_the_same_views_whole():
    objective = BlackBoxObjective(make_black_box(), digits(20), [HIDDEN, TransformationTerm()])
    assert objective.views == (UPRIGHT, POSED)


def test_a_hidden_view_stands_in_for_the_plain_one_and_two_that_differ_are_refused():
    hidden = HIDDEN.views()[1]
    for wanted in ([POSED, hidden], [hidden, POSED], [hidden, hidden]):
        assert join_views(wanted) == (hidden,)
    with pytest.raises(ConfigError, match="'posed'"):
        make_config(
            terms=[equivariance(unseen="silent", hidden=0.2), equivariance(unseen="silent", hidden=0.3)]
        )


def test_what_is_not_seen_can_be_filled():
    grey = HiddenView("posed", "pose", hidden=0.3, fill="mean")
    images = torch.rand(4, 1, 28, 28, generator=make_rng(0))
    batch = show_batch(torch.arange(4), images, torch.zeros(4), [grey], Draws(0, 0, 4), TransformFamily())
    (mask,), (pose,) = batch.visible, batch.poses
    pictures = batch.pictures()
    posed = pose(images, fill="mean")
    filled = posed.mean((-2, -1), keepdim=True).expand_as(posed)
    torch.testing.assert_close(pictures, torch.where(mask[:, None], posed, filled))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unseen": "silent", "hidden": 1.0}, "hidden: "),
        ({"unseen": "silent", "hidden": -0.1}, "hidden: "),
        ({"hidden": 0.2}, "hidden: "),
        ({"maps": "relative", "form": "calibrated"}, "form: "),
        ({"start": 0.5, "end": 0.5}, "start"),
        ({"weight": -1.0}, "equivariance.weight: "),
    ],
)
def test_what_means_nothing_cannot_be_written(changes, words):
    with pytest.raises(ConfigError, match=words):
        EquivarianceTerm(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weight": -1.0}, "transformation.weight: "),
        ({"n_exemplars": 17}, "n_exemplars: "),
        ({"n_nearest": 0}, "n_nearest: "),
    ],
)
def test_values_out_of_range_are_refused(changes, words):
    with pytest.raises(ConfigError, match=words):
        TransformationTerm(**changes)


@pytest.mark.slow
def test_hiding_keeps_evidence_out_of_what_is_not_seen(tmp_path):
    data = digits(200)
    found = {}
    for unseen in ("ignored", "silent"):
        terms = [transformation(), equivariance(weight=3.0, unseen=unseen)]
        config = make_config(epochs=16, batch_size=20, terms=terms)
        torch.manual_seed(0)
        model = fit(make_site("pyramid"), data, config, folder=tmp_path / unseen).model.eval()
        images = data.images[:100] / 255
        pose = shifted(100)
        evidence = model.explain(pose(images)).evidence.abs()
        beyond = ~pose.mask(tuple(evidence.shape[-2:]))[:, None]
        found[unseen] = float((evidence * beyond).sum() / evidence.sum())
    assert found["silent"] < 0.8 * found["ignored"]
