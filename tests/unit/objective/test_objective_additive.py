"""Additive evidence: the law of additive models, a slow reference, both forms; silence on blank pictures."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from experiments.concise import ConciseEvidence, spread_of
from torchsite.errors import ConfigError
from torchsite.model.site import Forward
from torchsite.objective import (
    AdditiveEvidence,
    BlackBoxObjective,
    Draws,
    EquivarianceTerm,
    Share,
    SiteObjective,
)
from torchsite.objective.additive import additive_losses, block_masks, place_losses, shapley_sizes
from torchsite.objective.batch import show_batch
from torchsite.objective.term import Step
from torchsite.objective.views import UPRIGHT
from torchsite.randomness import make_rng
from torchsite.training import TrainingConfig
from torchsite.transforms import TransformFamily
from training_makers import digits, make_black_box, make_config, make_site, run

N = 8


def batch_of(terms, *, share=None, n=N, corners=("black",), images=None):
    """Random pictures in the views of some terms."""
    objective = SiteObjective(make_site(), digits(20), terms, views=[UPRIGHT], corners=corners)
    images = torch.rand(n, 1, 28, 28, generator=make_rng(1)) if images is None else images
    share = share or Share()
    rows, labels = torch.arange(n)[share.rows(n)], (torch.arange(n) % 3)[share.rows(n)]
    draws = Draws(0, 3, n)
    return show_batch(rows, images[share.rows(n)], labels, objective.views, draws, TransformFamily(), share)


def planted(images):
    """The pass of an additive model: every cell of 4 × 4 pixels speaks of its own pixels and of no others.

    What a cell says is zero for the filling, here black, and differs between three classes.
    """
    cells = F.avg_pool2d(images, 4)
    weights = torch.tensor([1.0, -2.0, 0.5]).view(1, 3, 1, 1)
    evidence = weights * cells + weights.square() * cells.square()
    return Forward(cells, evidence.unsqueeze(2), evidence.unsqueeze(2), evidence)


def step_of(term, batch):
    return Step(batch, make_site(), planted(batch.pictures()))


BLACK = AdditiveEvidence(
    fill=("black",), blocks=(7,), portion=1.0
)  # blocks of 4 pixels: the cells themselves


def aligned(batch, cells=None):
    """The same batch with masks of whole cells: these, or random ones."""
    *others, last = batch.shown
    cells = torch.rand(N, 7, 7, generator=make_rng(2)) < 0.5 if cells is None else cells
    mask = cells.repeat_interleave(4, 1).repeat_interleave(4, 2)
    return replace(batch, shown=(*others, replace(last, all_visible=mask)))


def test_an_additive_model_has_no_loss():
    batch = aligned(batch_of([BLACK]))
    found = BLACK.loss(step_of(BLACK, batch), None)
    assert found.loss.item() == pytest.approx(0, abs=1e-5)


def test_a_model_that_looks_at_the_whole_has_a_loss():
    left = (torch.arange(7) < 4).expand(N, 7, 7)
    step = step_of(BLACK, aligned(batch_of([BLACK]), left))
    spread = step.run.evidence.mean((-2, -1), keepdim=True).expand_as(step.run.evidence)
    template = replace(step, run=replace(step.run, evidence=spread))
    assert BLACK.loss(template, None).loss.item() > 0.1


def test_the_term_is_its_formula():
    """A loop over pictures and classes in float64."""
    term = AdditiveEvidence(portion=0.5, place=0.7, pool=1)
    batch = batch_of([term])
    step = step_of(term, batch)
    whole = step.view("upright").run.evidence.double()
    part = step.view("masked")
    assert len(part.run.evidence) == N // 2
    amounts, places = [], []
    for row in range(N // 2):
        shown = part.visible[row].double().reshape(7, 4, 7, 4).mean((1, 3))
        said = (whole[row] - whole[row].mean(0)) * shown
        heard = part.run.evidence[row].double()
        heard = heard - heard.mean(0)
        gaps = (said.sum((1, 2)) - heard.sum((1, 2))).abs()
        amount = torch.where(gaps < 1, gaps.square() / 2, gaps - 0.5)
        sizes = (said.square().sum((1, 2)) * heard.square().sum((1, 2))).sqrt()
        dots = (said * heard).sum((1, 2)) / sizes.clamp_min(1e-6)
        own = int(batch.labels[row])
        amounts.append((amount.mean() + amount[own]) / 2)
        places.append(((1 - dots).mean() + 1 - dots[own]) / 2)
    expected = torch.stack(amounts).mean() + 0.7 * torch.stack(places).mean()
    found = term.loss(step, None)
    assert found.loss.item() == pytest.approx(expected.item(), rel=1e-4)
    assert found.watched["evidence in place"].item() == pytest.approx(
        torch.stack(places).mean().item(), rel=1e-4
    )


def test_shares_of_several_processes_are_the_whole():
    """Masks, fillings and poses are drawn for the global batch: means over processes are the global mean."""
    term = AdditiveEvidence(place=0.5)
    pictures = torch.rand(N, 1, 28, 28, generator=make_rng(1))
    whole, *parts = (
        batch_of([term], share=share, images=pictures) for share in (Share(), Share(0, 2), Share(1, 2))
    )
    of_whole = term.loss(step_of(term, whole), None).loss
    of_parts = [term.loss(step_of(term, part), None).loss for part in parts]
    torch.testing.assert_close(torch.stack(of_parts).mean(), of_whole)


def test_plain_maps_are_those_of_each_class_alone():
    plain, relative = (AdditiveEvidence(maps=maps, place=0, portion=1.0) for maps in ("plain", "relative"))
    step = step_of(plain, batch_of([plain]))
    shared = replace(step.run, evidence=step.run.evidence + step.run.features.square())  # by all classes
    changed = replace(step, run=shared)
    torch.testing.assert_close(relative.loss(changed, None).loss, relative.loss(step, None).loss)
    assert not torch.isclose(plain.loss(changed, None).loss, plain.loss(step, None).loss)


def test_places_are_compared_between_sums_over_cells():
    said, heard = (torch.randn(2, 3, 7, 6, generator=make_rng(k)) for k in (0, 1))
    sums = [
        torch.stack([maps[..., r : r + 4, c : c + 4].sum((-2, -1)) for r in (0, 4) for c in (0, 4)], dim=-1)
        for maps in (said, heard)
    ]
    expected = 1 - torch.nn.functional.cosine_similarity(*sums, dim=-1)
    torch.testing.assert_close(place_losses(said, heard, 4), expected)


def test_a_portion_of_the_pictures_costs_a_portion_of_a_view():
    batch = batch_of([AdditiveEvidence(portion=0.25)])
    assert {one.view.name: n for one, n in zip(batch.shown, batch.counts, strict=True)} == {
        "upright": N,
        "masked": 2,
    }
    assert len(batch.pictures()) == N + 2


def test_hidden_parts_are_filled_and_the_rest_is_the_picture():
    batch = batch_of([AdditiveEvidence(portion=1.0, fill=("mean",))])
    upright, masked = batch.pictures().split(N)
    visible = batch.visible[1][:, None]
    means = upright.mean((-2, -1), keepdim=True).expand_as(upright)
    torch.testing.assert_close(masked, torch.where(visible, upright, means))


def test_fillings_are_drawn_for_each_picture():
    batch = batch_of([AdditiveEvidence(portion=1.0, fill=("mean", "black"))], n=64)
    masked = batch.pictures()[64:]
    hidden = ~batch.visible[1][:, None]
    black = torch.stack([(picture[gone] == 0).all() for picture, gone in zip(masked, hidden, strict=True)])
    assert 16 < int(black.sum()) < 48


@pytest.mark.parametrize("size", [(28, 28), (32, 48)])
def test_blocks_keep_what_they_are_asked_to(size):
    masks = block_masks(400, size, (4, 8), (0.3, 0.3), make_rng(0))
    assert masks.float().mean().item() == pytest.approx(0.3, abs=0.03)
    assert torch.equal(masks, block_masks(400, size, (4, 8), (0.3, 0.3), make_rng(0)))
    assert block_masks(5, size, (4,), (1.0, 1.0), make_rng(0)).all()
    shares = block_masks(400, size, (8,), (0.1, 0.9), make_rng(0)).float().mean((1, 2))
    assert shares.min() < 0.2
    assert shares.max() > 0.8


def test_shapleys_kernel_decides_how_many_blocks_are_kept():
    """Of 16 blocks k are kept with weights 1/(k(16 - k)): one, or all but one, in about 16 % of cases."""
    kept = shapley_sizes(torch.full((20_000,), 16), make_rng(0))
    k = torch.arange(1, 16)
    weights = 1 / (k * (16 - k))
    found = torch.bincount(kept, minlength=16)[1:] / len(kept)
    torch.testing.assert_close(found, weights / weights.sum(), atol=0.01, rtol=0)
    mixed = shapley_sizes(torch.tensor([2, 4, 100] * 200), make_rng(1)).view(200, 3)
    assert (mixed >= 1).all()
    assert (mixed < torch.tensor([2, 4, 100])).all()


@pytest.mark.parametrize("size", [(32, 32), (28, 40)])
def test_shapley_masks_hide_something_and_show_something(size):
    masks = block_masks(300, size, (4, 8), (0.1, 0.9), make_rng(0), "shapley")
    shares = masks.float().mean((1, 2))
    assert (shares > 0).all()
    assert (shares < 1).all()
    assert shares.mean().item() == pytest.approx(0.5, abs=0.06)
    assert ((shares < 0.1) | (shares > 0.9)).float().mean() > 0.3  # small parts are the most telling
    assert torch.equal(masks, block_masks(300, size, (4, 8), (0.1, 0.9), make_rng(0), "shapley"))


def test_small_differences_count_more_with_a_small_beta():
    said, heard = torch.full((1, 1, 2, 2), 0.1), torch.zeros(1, 1, 2, 2)  # sums differ by 0.4
    assert additive_losses(said, heard).item() == pytest.approx(0.08)
    assert additive_losses(said, heard, 0.2).item() == pytest.approx(0.3)


def test_few_cells_are_few_words():
    one, all_alike = torch.zeros(1, 4, 4), torch.full((1, 4, 4), -3.0)
    one[0, 1, 2] = 5.0
    assert spread_of(one).item() == pytest.approx(1 / 4)
    assert spread_of(all_alike).item() == pytest.approx(1.0)
    assert spread_of(torch.zeros(1, 4, 4)).item() == 0
    maps = torch.randn(3, 5, 6, generator=make_rng(0))
    torch.testing.assert_close(spread_of(7 * maps), spread_of(maps))


def test_conciseness_is_asked_of_the_own_class_relative_to_all():
    term = ConciseEvidence()
    batch = batch_of([term])
    step = step_of(term, batch)
    evidence = step.view("upright").run.evidence
    relative = evidence - evidence.mean(1, keepdim=True)
    own = torch.stack([relative[i, label] for i, label in enumerate(batch.labels)]).flatten(1)
    expected = (own.abs().sum(1) / own.square().sum(1).sqrt()).mean() / own.shape[1] ** 0.5
    torch.testing.assert_close(term.loss(step, None).loss, expected)


def test_the_black_box_is_taught_by_masked_pictures_too():
    objective = BlackBoxObjective(make_black_box(), digits(20), [AdditiveEvidence()], views=[UPRIGHT])
    assert [(view.name, view.judged) for view in objective.views] == [("upright", True), ("masked", True)]
    images, labels = torch.rand(N, 1, 28, 28), torch.arange(N) % 3
    batch = show_batch(torch.arange(N), images, labels, objective.views, Draws(0, 0, N), TransformFamily())
    assert objective(batch).losses["loss"].isfinite()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kept": (0.9, 0.1)}, "kept: "),
        ({"blocks": (1,)}, "blocks: "),
        ({"portion": 0.0}, "portion: "),
        ({"place": -1.0}, "place: "),
        ({"beta": 0.0}, "beta: "),
        ({"pool": 0}, "pool: "),
        ({"fill": ()}, "fill: "),
        ({"fill": ("other",)}, "fill: "),
        ({"fill": ("blak",)}, "'black'"),
    ],
)
def test_what_means_nothing_cannot_be_written(options, message):
    with pytest.raises(ConfigError, match=message):
        AdditiveEvidence(**options)


def test_corners_are_named_fillings():
    with pytest.raises(ConfigError, match=r"corners: .*'grey'"):
        TrainingConfig(corners=("grey",))
    with pytest.raises(ConfigError, match="corners: "):
        TrainingConfig(corners=())
    with pytest.raises(ConfigError, match=r"corners.*'other'"):
        make_config(corners=["other"], terms=[{"name": "equivariance", "unseen": "silent", "weight": 1.0}])


def test_corners_are_filled_in_every_posed_view():
    images = torch.rand(16, 1, 28, 28, generator=make_rng(1)) / 2 + 0.5
    batch = batch_of([EquivarianceTerm()], n=16, corners=("mean",), images=images)
    assert batch.pictures().min() > 0.4, "a black corner is left"


def test_a_run_with_both_terms_trains(tmp_path):
    terms = [
        {"name": "additive_evidence", "sizes": "shapley", "beta": 0.2},
        {"name": "concise_evidence", "weight": 0.1},
    ]
    run(tmp_path, epochs=1, terms=terms, corners=["black", "mean", "other", "reflection"])
    log = (tmp_path / "logs" / "metrics.csv").read_text()
    assert "additive_evidence" in log
    assert "concise_evidence" in log
