"""Taught by hiding: a map that says what hiding does has no loss; the formula; only the map learns."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from torchsite.errors import ConfigError
from torchsite.model.site import Forward
from torchsite.objective import Draws, Share, SiteObjective
from torchsite.objective.batch import show_batch
from torchsite.objective.hiding import TaughtByHiding, correlation, softened, without_patches
from torchsite.objective.term import Step
from torchsite.objective.views import UPRIGHT
from torchsite.randomness import make_rng
from torchsite.transforms import TransformFamily
from training_makers import digits, make_site, run

N = 8
WEIGHTS = torch.tensor([1.0, -2.0, 0.5]).view(1, 3, 1, 1)


class Additive(torch.nn.Module):
    """Every cell of 7 × 7 pixels speaks of its own pixels and of no others; black says nothing."""

    def evidence(self, images):
        cells = F.avg_pool2d(images, 7)
        return WEIGHTS * cells + WEIGHTS.square() * cells.square()

    def forward(self, images):
        return self.evidence(images).sum((-2, -1))


def batch_of(term, share=None):
    objective = SiteObjective(make_site(), digits(20), [term], views=[UPRIGHT])
    images = torch.rand(N, 1, 28, 28, generator=make_rng(1))
    share = share or Share()
    rows, labels = torch.arange(N)[share.rows(N)], (torch.arange(N) % 3)[share.rows(N)]
    return show_batch(
        rows, images[share.rows(N)], labels, objective.views, Draws(0, 3, N), TransformFamily(), share
    )


def step_of(batch, model, evidence=None):
    evidence = Additive().evidence(batch.images) if evidence is None else evidence
    parts = evidence.unsqueeze(2)
    return Step(batch, model, Forward(evidence[:, 0], parts, parts, evidence))


BLACK = TaughtByHiding(fill=("black",), portion=1.0)


def test_the_map_of_an_additive_model_has_no_loss():
    batch = batch_of(BLACK)
    assert BLACK.loss(step_of(batch, Additive()), None).loss.item() == pytest.approx(0, abs=1e-4)


def test_the_map_of_another_picture_has_one():
    batch = batch_of(BLACK)
    mismatched = Additive().evidence(batch.images).roll(1, 0)
    assert BLACK.loss(step_of(batch, Additive(), mismatched), None).loss.item() > 0.3


def test_the_size_of_the_map_does_not_matter():
    batch = batch_of(BLACK)
    evidence = torch.randn(N, 3, 8, 8, generator=make_rng(2))
    one, five = (BLACK.loss(step_of(batch, Additive(), k * evidence), None).loss.item() for k in (1.0, 5.0))
    assert one == pytest.approx(five, rel=1e-5)


def test_the_term_is_its_formula():
    """A loop over pictures, patches and classes, each patch hidden by hand."""
    term = TaughtByHiding(fill=("mean",), portion=0.5, patches=2)
    model, batch = make_site(), batch_of(term)
    evidence = torch.randn(N, 10, 8, 8, generator=make_rng(2))
    found = term.loss(step_of(batch, model, evidence), None).loss.item()
    losses = []
    model.eval()
    for row in range(N // 2):
        picture, drops, sums = batch.images[row], [], []
        for r in (0, 1):
            for c in (0, 1):
                hidden = picture.clone()
                hidden[:, 14 * r : 14 * r + 14, 14 * c : 14 * c + 14] = picture.mean()
                drop = (model(picture[None]) - model(hidden[None]))[0].detach()
                drops.append(drop - drop.mean())
                patch = evidence[row, :, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4].sum((1, 2))
                sums.append(patch - patch.mean())
        soft = [torch.stack(values, 1) for values in (sums, drops)]
        soft = [torch.asinh(values / (0.1 * values.square().mean(1, keepdim=True).sqrt())) for values in soft]
        pairs = zip(*soft, strict=True)
        gaps = torch.stack([1 - torch.corrcoef(torch.stack(pair))[0, 1] for pair in pairs])
        losses.append((gaps.mean() + gaps[batch.labels[row]]) / 2)
    assert found == pytest.approx(torch.stack(losses).mean().item(), rel=1e-3)


def test_plain_maps_are_compared_with_plain_logits():
    plain = replace(BLACK, maps="plain")
    batch = batch_of(BLACK)
    shared = Additive().evidence(batch.images) + torch.randn(N, 1, 4, 4, generator=make_rng(4))
    relative, alone = (
        term.loss(step_of(batch, Additive(), shared), None).loss.item() for term in (BLACK, plain)
    )
    assert relative == pytest.approx(0, abs=1e-4)
    assert alone > 0.05


def test_only_the_map_learns():
    model, batch = make_site("pyramid"), batch_of(BLACK)
    model.train()
    statistics = {name: value.clone() for name, value in model.named_buffers()}
    evidence = torch.randn(N, 10, 8, 8, generator=make_rng(2)).requires_grad_()
    BLACK.loss(step_of(batch, model, evidence), None).loss.backward()
    assert evidence.grad.abs().sum() > 0
    assert all(parameter.grad is None for parameter in model.parameters())
    assert model.training
    for name, value in model.named_buffers():
        torch.testing.assert_close(value, statistics[name])


def test_shares_of_several_processes_are_the_whole():
    term = replace(BLACK, fill=("mean", "black", "blur"))
    batches = [batch_of(term, share) for share in (Share(), Share(0, 2), Share(1, 2))]
    whole, *parts = (term.loss(step_of(batch, Additive()), None) for batch in batches)
    assert whole.loss > 0.001, "fillings that say something"
    torch.testing.assert_close(torch.stack([part.loss for part in parts]).mean(), whole.loss)


def test_every_pixel_is_hidden_once():
    shown = without_patches((30, 17), 4)
    assert shown.shape == (17, 30, 17)
    assert ((~shown).sum(0) == 1).all()
    assert shown[-1].all()


def test_small_values_keep_their_order_and_their_sign():
    values = torch.tensor([[[10.0, 0.2, 0.1, 0.0, -0.1, -10.0]]])
    soft = softened(values, 0.1)[0, 0]
    assert soft.tolist() == sorted(soft.tolist(), reverse=True)
    assert soft[3] == 0
    assert soft[0] == -soft[-1]
    assert (soft[1] - soft[2]) / soft[0] > 4 * (0.2 - 0.1) / 10


def test_a_map_that_says_nothing_can_learn():
    silent = torch.zeros(1, 1, 16, requires_grad=True)
    correlation(softened(silent, 0.1), torch.randn(1, 1, 16, generator=make_rng(0))).sum().backward()
    assert silent.grad.isfinite().all()


def test_a_constant_map_is_not_correlated():
    flat, some = torch.ones(1, 1, 16), torch.randn(1, 1, 16, generator=make_rng(0))
    assert correlation(flat, some).item() == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patches": 1}, "patches: "),
        ({"portion": 0.0}, "portion: "),
        ({"softness": 0.0}, "softness: "),
        ({"fill": ()}, "fill: "),
        ({"fill": ("blak",)}, "'black'"),
        ({"fill": ("other",)}, "fill: "),
    ],
)
def test_what_means_nothing_cannot_be_written(options, message):
    with pytest.raises(ConfigError, match=message):
        TaughtByHiding(**options)


def test_a_run_with_the_term_trains(tmp_path):
    run(tmp_path, epochs=1, terms=[{"name": "hiding", "portion": 0.5}])
    names, *rows = (row.split(",") for row in (tmp_path / "logs" / "metrics.csv").read_text().splitlines())
    losses = [float(row[names.index("hiding")]) for row in rows if row[names.index("hiding")]]
    assert losses
    assert all(0 < loss < 2 for loss in losses)
