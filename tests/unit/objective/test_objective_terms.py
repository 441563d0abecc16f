"""Terms are values that say what they need; the objective adds them up."""

from dataclasses import dataclass, replace

import pytest
import torch

from torchsite.configs import from_mapping, to_mapping
from torchsite.errors import ConfigError
from torchsite.model import SITE
from torchsite.objective import Found, Share, Term, TransformationTerm, View
from torchsite.objective.equivariance import EquivarianceTerm, equivariance_losses
from torchsite.objective.term import own_and_all
from torchsite.objective.transformation import transformation_loss
from torchsite.randomness import make_rng
from torchsite.training.batches import make_batch
from torchsite.training.fit import make_objective
from training_makers import digits, equivariance, make_black_box, make_config, make_site, run, transformation

DATA = digits(40)


def make_both(model=None, **changes):
    """An objective in evaluation mode, and its batch at a step."""
    config = make_config(batch_size=8, **changes)
    model = model or make_site()
    objective = make_objective(model.eval(), DATA, config)
    like = next(model.parameters())
    return objective, lambda step=0: make_batch(DATA, config, objective.views, step, like, Share())


VIEWS = {
    "posed": {},
    "upright_and_posed": {"views": ["upright", "posed"]},
}


@pytest.mark.parametrize("views", VIEWS)
@pytest.mark.parametrize("make", [make_site, make_black_box])
def test_both_kinds_of_model_see_the_same_views(views, make):
    objective, batch_at = make_both(make(), **VIEWS[views])
    seen, run = [], objective.run
    objective.run = lambda images: seen.append(images) or run(images)
    batch = batch_at()
    objective(batch)
    assert len(batch.poses) == (1 if views == "posed" else 2)
    expected = torch.cat([pose(batch.images) for pose in make_both(**VIEWS[views])[1]().poses])
    torch.testing.assert_close(seen[0], expected)


def test_half_of_the_direct_term_is_the_own_class_and_half_all_classes():
    objective, batch_at = make_both(terms=[transformation(), equivariance(weight=0.5)])
    batch = batch_at()
    found = objective(batch).losses
    first, second = (objective.model.run(pose(batch.images)).evidence for pose in batch.poses)
    motion = batch.poses[1] @ batch.poses[0].inverse()
    one_by_one = torch.stack(
        [equivariance_losses(*(m[:, [i]] for m in (first, second)), motion) for i in range(10)]
    )
    own = torch.stack(
        [
            equivariance_losses(first[[n], [label], None], second[[n], [label], None], motion[n : n + 1])
            for n, label in enumerate(batch.labels.tolist())
        ]
    )
    expected = (one_by_one.mean() + own.mean()) / 2
    torch.testing.assert_close(found["equivariance"], expected)
    total = found["classification"] + 5 * found["transformation"] + 0.5 * expected
    torch.testing.assert_close(found["loss"], total)


def test_the_calibrated_term_is_the_cosine_over_what_is_above_the_floor():
    losses = {}
    for form in ("cosine", "calibrated"):
        objective, batch_at = make_both(terms=[equivariance(form=form)])
        losses[form] = objective(batch_at()).losses
    plain, floor = losses["cosine"]["equivariance"], losses["calibrated"]["floor"]
    torch.testing.assert_close(losses["calibrated"]["equivariance"], plain / (1 - floor))


def test_prototypes_must_agree_above_those_of_other_pictures_of_the_same_class():
    objective, batch_at = make_both(terms=[equivariance(maps="prototypes", form="calibrated")])
    objective.model.generator.heads.weight.data.mul_(1000)  # untrained prototypes are all alike
    batch = batch_at()
    found = objective(batch).losses
    with torch.no_grad():
        first, second = objective.model.run(batch.pictures()).prototypes[:, :, 0].split(len(batch))
    mask = batch.poses[1].mask((28, 28))[:, None]
    losses = 1 - torch.cosine_similarity(*((mask * x).flatten(2) for x in (batch.poses[1](first), second)), 2)
    unit = torch.nn.functional.normalize(first.flatten(2), dim=2).transpose(0, 1)
    n = len(batch)
    floor = ((unit @ unit.mT).sum((1, 2)) - n).mean() / (n * (n - 1))
    torch.testing.assert_close(found["floor"], floor)
    assert floor < 0.99
    expected = own_and_all(losses, batch.labels) / (1 - floor)
    torch.testing.assert_close(found["equivariance"], expected, rtol=1e-4, atol=0)


RELATIVE = [equivariance(form="calibrated", end=0.5), equivariance(maps="relative", start=0.5)]


def test_from_a_point_on_the_direct_term_is_the_cosine_of_relative_maps():
    model = SITE.from_config(replace(make_site().config, zero_sum=True)).eval()
    objective, batch_at = make_both(model, epochs=2, terms=RELATIVE)
    single = {maps: make_both(model, terms=[term | {"start": 0.0, "end": 1.0}])[0]
              for maps, term in zip(("plain", "relative"), RELATIVE, strict=True)}  # fmt: skip
    for step, maps in ((0, "plain"), (4, "plain"), (5, "relative"), (9, "relative")):
        batch = batch_at(step)
        found = objective(batch).losses
        torch.testing.assert_close(found["equivariance"], single[maps](batch).losses["equivariance"])
        assert "equivariance 2" not in found
        assert ("floor" in found) == (maps == "plain")
    batch = batch_at()
    plain, relative = (single[maps](batch).losses["equivariance"] for maps in ("plain", "relative"))
    assert not torch.allclose(plain, relative)


def test_only_a_model_that_shows_relative_maps_trains_them():
    with pytest.raises(ConfigError, match=r"equivariance\.maps: "):
        make_both(terms=RELATIVE)


@pytest.mark.parametrize("views", VIEWS)
def test_prototypes_are_judged_in_every_view(views):
    objective, batch_at = make_both(terms=[transformation(targets="mean")], **VIEWS[views])
    batch = batch_at()
    found = objective(batch).losses["transformation"]
    targets = objective.memories["0"](batch.rows, make_rng(0), batch.share)
    one_by_one = [
        transformation_loss(objective.model.run(pose(batch.images)).raw_prototypes, targets, pose)
        for pose in batch.poses
    ]
    torch.testing.assert_close(found, torch.stack(one_by_one).mean())


def test_features_are_learnt_from_the_upright_view_where_there_is_one():
    objective, batch_at = make_both(views=["upright", "posed"])
    batch = batch_at()
    torch.testing.assert_close(objective(batch).features, batch.images)


def test_two_terms_of_one_name_are_watched_apart():
    objective, batch_at = make_both(terms=[equivariance(), equivariance(form="centred", weight=2.0)])
    found = objective(batch_at()).losses
    total = found["classification"] + found["equivariance"] + 2 * found["equivariance 2"]
    torch.testing.assert_close(found["loss"], total)


def test_without_terms_only_the_answers_count():
    objective, batch_at = make_both(terms=[])
    found = objective(batch_at()).losses
    assert torch.equal(found["loss"], found["classification"])
    assert not list(objective.memories.values())


# A term of one's own: everything about it stands in one place


@dataclass(frozen=True)
class BlockedView(View):
    """The upright picture with random cells hidden, which the model is not judged by."""

    def visible(self, draws, size):
        return torch.rand(draws.n, *size, generator=draws.rng("blocks")) < 0.5


BLOCKED = BlockedView("blocked", judged=False, fill="mean")


@dataclass(frozen=True, kw_only=True)
class AdditiveTerm(Term, name="test_additive"):
    """What the map says of a part is what the model says of that part."""

    def views(self):
        return View("upright"), BLOCKED

    def loss(self, step, memory):
        whole, part = step.view("upright").run, step.view("blocked")
        size = whole.evidence.shape[-2:]
        kept = torch.nn.functional.adaptive_avg_pool2d(part.visible.to(whole.evidence), size)
        said = (whole.evidence * kept[:, None]).sum((-2, -1))
        noise = torch.rand((), generator=step.draws.rng("test_additive"))
        return Found((said - part.run.logits).square().mean(), {"noise": noise})


def test_a_new_term_with_a_view_of_its_own_is_one_class(tmp_path):
    terms = [transformation(), {"name": "test_additive", "weight": 0.3}]
    objective, batch_at = make_both(terms=terms)
    batch = batch_at()
    assert [one.view.name for one in batch.shown] == ["upright", "posed", "blocked"]
    found = objective(batch).losses
    total = found["classification"] + 5 * found["transformation"] + 0.3 * found["test_additive"]
    torch.testing.assert_close(found["loss"], total)
    alone, _ = make_both(views=["upright", "posed"])
    judged = replace(batch, shown=batch.shown[:2])
    for name in ("classification", "transformation"):
        torch.testing.assert_close(found[name], alone(judged).losses[name])
    torch.testing.assert_close(objective(batch_at()).losses["noise"], found["noise"])
    assert objective(batch_at(1)).losses["noise"] != found["noise"]
    _, batch_at = make_both(make_black_box(), terms=terms)
    assert len(batch_at().shown) == 2
    run(tmp_path, epochs=1, terms=terms)
    assert "test_additive" in (tmp_path / "logs" / "metrics.csv").read_text()


def test_a_name_is_taken_once():
    assert from_mapping(Term, to_mapping(AdditiveTerm(weight=2.0))) == AdditiveTerm(weight=2.0)
    assert {"transformation", "equivariance"} <= set(Term.tags)
    assert Term.tags["transformation"] is TransformationTerm
    with pytest.raises(ConfigError, match=r"'equivariance' .*EquivarianceTerm"):
        type("Other", (EquivarianceTerm,), {}, name="equivariance")
