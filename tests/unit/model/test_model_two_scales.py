"""Evidence at two scales: complete, local where it says so, learnt in stages."""

import pytest
import torch
import torch.nn.functional as F

from torchsite import SITE, BlackBox
from torchsite.errors import ConfigError
from torchsite.model.efficientnet import LITE0, Lite
from torchsite.model.folded_lite import FoldedLite, folded
from torchsite.model.two_scale_generator import smoothed
from torchsite.model.two_scales import TwoScales
from torchsite.modes import evaluating
from torchsite.randomness import make_rng

SIDE = 32
GENERATORS = ("two_scales", "shared_patterns")
SEEN = 19  # pixels that a feature of a part depends on


def make_model(n_classes: int = 3, generator: str = "two_scales") -> SITE:
    """A small model with new weights, whose batch norms have seen something."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SITE(
            "two_scales",
            generator,
            n_classes,
            image_shape=(3, SIDE, SIDE),
            zero_sum=True,
            pretrained=False,
        )
        for _ in range(3):
            model.run(pictures(8))
    return model.eval()


def pictures(n: int = 2, seed: int = 0, side: int = SIDE) -> torch.Tensor:
    return torch.rand(n, 3, side, side, generator=make_rng(seed))


def evidence_by_scale(model: SITE, images: torch.Tensor) -> torch.Tensor:
    return model.generator.by_scale(model.features(images), model.bound_prototypes)[0]


def test_the_folded_network_is_the_published_one() -> None:
    plain = Lite(LITE0).eval()
    rng = make_rng(0)
    for name, tensor in plain.state_dict().items():
        if name.endswith("running_mean"):
            tensor.copy_(0.1 * torch.randn(tensor.shape, generator=rng))
        if name.endswith("running_var"):
            tensor.copy_(0.5 + torch.rand(tensor.shape, generator=rng))
    network = FoldedLite(LITE0)
    network.load_state_dict(folded(plain.state_dict()))
    with torch.no_grad():
        for expected, found in zip(plain(pictures()), network(pictures()), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_the_first_blocks_and_all_depthwise_kernels_stay_as_they_are() -> None:
    network = FoldedLite()
    learning = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    assert learning
    assert not any("depthwise" in name or name.startswith("stem") for name in learning)
    assert min(int(name.split(".")[1]) for name in learning) == network.n_frozen


@pytest.mark.parametrize("generator", GENERATORS)
def test_heatmaps_and_contributions_sum_to_the_logits(generator: str) -> None:
    model = make_model(generator=generator)
    with torch.no_grad():
        logits = model(pictures())
    explanation = model.train().explain(pictures())  # lent and given back in whatever mode it is
    torch.testing.assert_close(explanation.logits, logits, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(explanation.contributions.sum((2, 3, 4)), logits, rtol=1e-4, atol=1e-4)
    heatmaps = explanation.heatmaps(classes=explanation.predicted)
    torch.testing.assert_close(heatmaps.sum((-2, -1)), logits.max(1).values, rtol=1e-4, atol=1e-4)
    assert model.training


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("side", [32, 36, 48])
def test_other_sizes_are_complete_too(side: int, generator: str) -> None:
    model = make_model(generator=generator)
    with torch.no_grad():
        run = model.answer(pictures(side=side))
        product = (run.prototypes * run.features[:, None]).sum((2, 3, 4)) * model.product_scale
    torch.testing.assert_close(run.logits, product, rtol=1e-4, atol=1e-4)


def test_evidence_of_parts_depends_on_nothing_farther_than_they_see() -> None:
    side = 48
    model, before = make_model(), pictures(side=side)
    after = before.clone()
    after[:, :, : side // 2] = 0.5
    with torch.no_grad():
        parts = [evidence_by_scale(model, images)[:, 0] for images in (before, after)]
    rows = torch.arange(side // 4) * 4 + 2
    far = rows - SEEN // 2 - 4 >= side // 2
    near = rows < side // 2
    assert far.any()
    torch.testing.assert_close(parts[0][:, :, far], parts[1][:, :, far])
    assert not torch.allclose(parts[0][:, :, near], parts[1][:, :, near])


@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (1, 1, 1, 2)])
def test_smoothing_keeps_every_sum_and_takes_from_neighbours_alone(shape: tuple[int, ...]) -> None:
    evidence = torch.rand(shape, generator=make_rng(1), dtype=torch.float64)
    torch.testing.assert_close(smoothed(evidence).sum((-2, -1)), evidence.sum((-2, -1)))
    one = torch.zeros(1, 1, 7, 7)
    one[..., 3, 3] = 16
    expected = torch.tensor([1.0, 2.0, 1.0])
    torch.testing.assert_close(smoothed(one)[0, 0, 2:5, 2:5], expected[:, None] * expected)
    padded = F.pad(evidence, (1, 1, 1, 1), mode="replicate")
    slowly = F.avg_pool2d(F.avg_pool2d(padded, 2, 1), 2, 1)
    torch.testing.assert_close(smoothed(evidence), slowly)


@pytest.mark.parametrize("generator", GENERATORS)
def test_the_whole_is_judged_beside_parts_that_do_not_learn_from_it(generator: str) -> None:
    model = make_model(generator=generator)
    run = model.run(pictures())
    parts, both = run.stages
    torch.testing.assert_close(both, run.logits)
    templates = model.generator.templates
    assert torch.autograd.grad(both[:, 0].sum(), templates, retain_graph=True)[0].abs().sum() == 0
    assert torch.autograd.grad(parts[:, 0].sum(), templates)[0].abs().sum() > 0


def test_saved_and_loaded_it_answers_the_same(tmp_path) -> None:
    model = make_model()
    model.save_pretrained(tmp_path)
    again = SITE.from_pretrained(tmp_path)
    with torch.no_grad():
        assert torch.equal(again(pictures()), model(pictures()))


def test_the_black_box_has_the_same_features() -> None:
    shape = (3, SIDE, SIDE)
    box = BlackBox("two_scales", 3, encoder_of="two_scales", image_shape=shape, pretrained=False)
    with evaluating(box), torch.no_grad():
        assert box(pictures()).shape == (2, 3)
    assert box.feature_shape == make_model().feature_shape


@pytest.mark.parametrize("options", [{"variant": "lite9"}, {"fine_tuning": 0.0}, {"fine_tuning": 2.0}])
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        TwoScales(3, (SIDE, SIDE), **options)


def test_grey_pictures_are_refused() -> None:
    with pytest.raises(ConfigError):
        TwoScales(1, (SIDE, SIDE))


def test_parts_must_leave_features_for_the_whole() -> None:
    with pytest.raises(ConfigError):
        SITE(
            "two_scales",
            "two_scales",
            3,
            image_shape=(3, SIDE, SIDE),
            pretrained=False,
            generator_options={"parts": 80},
        )


def test_prototypes_are_bounded_mixtures_of_patterns() -> None:
    model = make_model(generator="shared_patterns")
    with torch.no_grad():
        model.generator.mixture.mul_(100)  # far beyond the bound, as training may push it
        run = model.run(pictures())
        patterns = model.generator.patterns(run.features)
        mixed, prototypes = torch.einsum("kdj,njrc->nkdrc", model.generator.shares, patterns), run.prototypes
    assert float(prototypes.abs().max()) <= 1
    whole = prototypes[:, :, model.generator.n_parts :, ::2, ::2]
    torch.testing.assert_close(whole, mixed, rtol=1e-4, atol=1e-4)


def test_training_and_evaluation_bound_the_features_alike() -> None:
    model = make_model()
    expected = model.features(pictures())
    model.train()
    with evaluating(model.feature_extractor):  # batch norms as before, the model itself in training
        torch.testing.assert_close(model.features(pictures()), expected, rtol=1e-4, atol=1e-5)
