"""In which poses each picture stands in a batch."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from training_makers import digits, make_black_box, make_config, make_site

from torchsite.errors import ConfigError
from torchsite.model import SITE, BlackBox
from torchsite.objective import equivariance_losses, transformation_loss
from torchsite.randomness import make_rng
from torchsite.training.kinds import BlackBoxTraining, SiteTraining
from torchsite.training.module import Training
from torchsite.transforms import AffineTransform, angles


def make_training(
    kind: type[Training] = SiteTraining, model: SITE | BlackBox | None = None, **changes: object
) -> Training:
    data = digits(40)
    model = model or (make_site() if kind is SiteTraining else make_black_box())
    training = kind(model, data, data, make_config(batch_size=8, **changes))
    training._trainer = SimpleNamespace(optimizers=[None], global_step=0, world_size=1, global_rank=0)
    return training


def batch_of(training: Training):
    return training._batch(torch.arange(8))


@pytest.mark.parametrize(("views", "n"), [("posed", 1), ("two_posed", 2), ("upright_and_posed", 2)])
@pytest.mark.parametrize("kind", [SiteTraining, BlackBoxTraining])
def test_both_kinds_of_model_see_the_same_views(views, n, kind):
    training = make_training(kind, views=views)
    seen = []
    training.run = lambda images: seen.append(images) or training.model.eval()(images)
    if kind is SiteTraining:
        training.run = lambda images: seen.append(images) or training.model.eval().run(images)
    batch = batch_of(training)
    training.losses(batch)
    assert len(batch.poses) == n
    expected = torch.cat([pose(batch.images) for pose in make_training(SiteTraining, views=views).views()])
    torch.testing.assert_close(seen[0], expected)


def test_the_upright_view_is_the_picture_itself_and_the_other_is_not():
    upright, posed = make_training(views="upright_and_posed").views()
    images = torch.rand(8, 1, 28, 28)
    torch.testing.assert_close(upright(images), images)
    assert not torch.allclose(posed(images), images, atol=0.1)


def test_two_poses_differ():
    first, second = make_training(views="two_posed").views()
    assert not torch.allclose(angles(first), angles(second))


@pytest.mark.parametrize("views", ["two_posed", "upright_and_posed"])
def test_half_of_the_direct_term_is_the_own_class_and_half_all_classes(views):
    training = make_training(views=views, equivariance_weight=0.5)
    training.model.eval()
    batch = batch_of(training)
    found = training.losses(batch).parts
    first, second = (training.model.run(pose(batch.images)).evidence for pose in batch.poses)
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
    parts = {}
    for kind in ("cosine", "calibrated"):
        training = make_training(views="upright_and_posed", equivariance_weight=1.0, equivariance=kind)
        training.model.eval()
        parts[kind] = training.losses(batch_of(training)).parts
    plain, floor = parts["cosine"]["equivariance"], parts["calibrated"]["floor"]
    torch.testing.assert_close(parts["calibrated"]["equivariance"], plain / (1 - floor))


RELATIVE = {
    "views": "upright_and_posed",
    "equivariance": "calibrated",
    "equivariance_weight": 1.0,
    "relative_from": 0.5,
}


def test_from_a_point_on_the_direct_term_is_the_cosine_of_relative_maps():
    usual = make_site()
    model = SITE.from_config(replace(usual.config, zero_sum=True)).eval()
    training = make_training(model=model, epochs=2, **RELATIVE)
    batch = batch_of(training)
    plain, relative = (
        training._equivariance(run.evidence, batch, form)["equivariance"]
        for run, form in (
            (model.run(batch.views()), "calibrated"),
            (model.answer(batch.views()), "cosine"),
        )
    )
    assert not torch.allclose(plain, relative)
    for steps, expected in ((0, plain), (4, plain), (5, relative), (9, relative)):
        training._trainer.global_step = steps
        torch.testing.assert_close(training.losses(batch).parts["equivariance"], expected)


@pytest.mark.parametrize("changes", [{"relative_from": 1.0}, {"equivariance_weight": 0.0}])
def test_relative_maps_are_asked_for_only_where_they_are_compared(changes):
    with pytest.raises(ConfigError, match="relative_from: expected the share"):
        make_config(**RELATIVE | changes)


def test_only_a_model_that_shows_relative_maps_trains_them():
    with pytest.raises(ConfigError, match="relative_from: expected a model that shows relative maps"):
        make_training(**RELATIVE)


@pytest.mark.parametrize("views", ["posed", "upright_and_posed", "two_posed"])
def test_prototypes_are_judged_in_every_view(views):
    training = make_training(views=views, targets="mean")
    training.model.eval()
    batch = batch_of(training)
    found = training.losses(batch).parts["transformation"]
    targets = training.targets(batch.rows, make_rng(0), batch.share)
    one_by_one = [
        transformation_loss(training.model.run(pose(batch.images)).raw_prototypes, targets, pose)
        for pose in batch.poses
    ]
    torch.testing.assert_close(found, torch.stack(one_by_one).mean())


def test_features_are_learnt_from_the_upright_view_where_there_is_one():
    training = make_training(views="upright_and_posed")
    batch = batch_of(training)
    assert isinstance(batch.poses[0], AffineTransform)
    torch.testing.assert_close(training.losses(batch).features, batch.images)


def test_flipping_mirrors_about_half_of_the_pictures_and_nothing_else():
    plain, flipped = batch_of(make_training()).images, batch_of(make_training(flip=True)).images
    mirrored = [torch.equal(a.flip(-1), b) for a, b in zip(plain, flipped, strict=True)]
    same = [torch.equal(a, b) for a, b in zip(plain, flipped, strict=True)]
    assert all(m or s for m, s in zip(mirrored, same, strict=True))
    assert 0 < sum(mirrored) < 8
    torch.testing.assert_close(batch_of(make_training(flip=True)).images, flipped)


def test_the_direct_term_needs_two_views():
    with pytest.raises(ConfigError, match="upright_and_posed"):
        make_config(equivariance_weight=1.0)
