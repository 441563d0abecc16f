"""A part of the second view is hidden, and nothing may count as evidence where nothing is seen."""

import pytest
import torch
from training_makers import digits, make_config, make_site

from torchsite.errors import ConfigError
from torchsite.objective import equivariance_losses
from torchsite.randomness import make_rng
from torchsite.training import fit
from torchsite.training.batch import Batch
from torchsite.training.loader import Share
from torchsite.training.masking import what_is_shown
from torchsite.transforms import AffineTransform, TransformFamily


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


def test_only_the_last_view_is_hidden_and_parts_together_are_the_whole():
    torch.manual_seed(0)
    n = 8
    poses = (AffineTransform.identity(n), TransformFamily().sample(n, rng=make_rng(0, "poses")))
    shown = what_is_shown(n, (12, 12), 0.3, make_rng(0, "hiding"))
    batch = Batch(
        torch.arange(n), torch.rand(n, 1, 12, 12) + 0.1, torch.zeros(n).long(), Share(), poses, shown
    )
    upright, posed = batch.views().chunk(2)
    torch.testing.assert_close(upright, batch.images)
    torch.testing.assert_close(posed, poses[1](batch.images) * shown[:, None])
    parts = [part.views().chunk(2) for part in batch.parts(4)]
    torch.testing.assert_close(torch.cat([second for _, second in parts]), posed)


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden": 1.0},
        {"hidden": -0.1},
        {"hidden": 0.2, "equivariance_weight": 0.0},
        {"hidden": 0.2, "views": "two_posed"},
    ],
)
def test_hiding_needs_the_direct_term_with_an_upright_view(changes):
    usual = {"views": "upright_and_posed", "equivariance_weight": 1.0}
    with pytest.raises(ConfigError, match="hidden"):
        make_config(**(usual | changes))


def test_hiding_keeps_evidence_out_of_what_is_not_seen(tmp_path):
    data = digits(200)
    found = {}
    for hidden in (None, 0.0):
        config = make_config(
            epochs=8, batch_size=20, views="upright_and_posed", equivariance_weight=3.0, hidden=hidden
        )
        torch.manual_seed(0)
        model = fit(make_site("pyramid"), data, config, folder=tmp_path / str(hidden)).model.eval()
        images = data.images[:100] / 255
        pose = shifted(100)
        evidence = model.explain(pose(images)).evidence.abs()
        beyond = ~pose.mask(tuple(evidence.shape[-2:]))[:, None]
        found[hidden] = float((evidence * beyond).sum() / evidence.sum())
    assert found[0.0] < 0.8 * found[None]
