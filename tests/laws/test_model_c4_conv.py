"""Kernels shared over quarter turns: whatever is turned at the entrance is turned at the exit, exactly."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchsite.errors import ConfigError
from torchsite.metrics import self_consistency
from torchsite.model import SITE, BlackBox
from torchsite.model.blocks import n_parameters
from torchsite.model.c4_conv import TURNS, C4BatchNorm2d, C4Conv2d, Layers
from torchsite.randomness import Rng, make_rng
from torchsite.transforms import AffineTransform, Transform, TransformFamily

SHARED = {"quarter_turns": True}


class QuarterTurns(TransformFamily):
    """A family of one: a quarter turn."""

    def sample(self, n: int, *, rng: Rng) -> Transform:
        return AffineTransform.rotation(torch.full((n,), 90.0))


def turned(maps: Tensor, turn: int, oriented: bool) -> Tensor:
    """The maps of the turned picture: turned, and each orientation in the place of the next."""
    maps = torch.rot90(maps, turn, (-2, -1))
    return maps.unflatten(1, (TURNS, -1)).roll(turn, 1).flatten(1, 2) if oriented else maps


EXTRACTORS = {
    "pyramid": {"depth": 3, "widths": (8, 8, 12, 16), "common": 8},
    "small_cnn": {"depth": 3, "widths": (8, 8, 12)},
}


def make_site(quarter_turns: bool = True, extractor: str = "pyramid") -> SITE:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        sharing = {"quarter_turns": quarter_turns}
        options = EXTRACTORS[extractor] | sharing
        generator = {"widths": (8, 12), "trunk": (8, 8)} | sharing
        model = SITE(extractor, "spatial", 4, extractor_options=options, generator_options=generator)
        return disturbed(model).double().eval()


def disturbed(model: nn.Module) -> nn.Module:
    """The model with batch norms and biases that differ from channel to channel, as after training."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.normal_(module.weight)
        if getattr(module, "bias", None) is not None:
            nn.init.normal_(module.bias)
    return model


@pytest.mark.parametrize("turn", range(1, TURNS))
@pytest.mark.parametrize(("lift", "project"), [(True, False), (False, False), (False, True)])
def test_a_convolution_turns_with_its_input(lift: bool, project: bool, turn: int) -> None:
    conv = C4Conv2d(8, 12, oriented_input=not lift, oriented_output=not project, bias=True).double()
    nn.init.normal_(conv.bias)
    maps = torch.randn(2, 8, 6, 6, dtype=torch.float64, generator=make_rng(0))
    expected = turned(conv(maps), turn, oriented=not project)
    torch.testing.assert_close(conv(turned(maps, turn, oriented=not lift)), expected)


def test_the_group_convolution_is_the_sum_it_is_defined_by() -> None:
    conv = C4Conv2d(8, 4).double()
    maps = torch.randn(1, 8, 5, 5, dtype=torch.float64, generator=make_rng(1))
    weight = conv.weight.unflatten(1, (TURNS, 2))
    by_orientation = maps.unflatten(1, (TURNS, 2))
    expected = [
        sum(
            F.conv2d(by_orientation[:, t], torch.rot90(weight[:, (t - s) % TURNS], s, (2, 3)), padding=1)
            for t in range(TURNS)
        )
        for s in range(TURNS)
    ]
    torch.testing.assert_close(conv(maps), torch.cat(expected, 1))


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_has_one_mean_for_all_orientations(training: bool) -> None:
    norm = disturbed(C4BatchNorm2d(8)).double().train(training)
    maps = torch.randn(3, 8, 4, 6, dtype=torch.float64, generator=make_rng(2)) + torch.arange(8).view(
        -1, 1, 1
    )
    mean, var = norm.running_mean, norm.running_var
    if training:
        mean = maps.unflatten(1, (TURNS, 2)).mean((0, 1, 3, 4))
        var = maps.unflatten(1, (TURNS, 2)).permute(2, 0, 1, 3, 4).flatten(1).var(1, unbiased=False)
    args = [value.repeat(TURNS) for value in (mean, var, norm.weight, norm.bias)]
    torch.testing.assert_close(norm(maps), F.batch_norm(maps, *args))


@pytest.mark.parametrize("turn", range(1, TURNS))
@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_heatmaps_of_a_turned_picture_are_the_turned_heatmaps(extractor: str, turn: int) -> None:
    model = make_site(extractor=extractor)
    images = torch.rand(2, 3, 32, 32, dtype=torch.float64, generator=make_rng(3))
    upright, posed = model.explain(images), model.explain(torch.rot90(images, turn, (2, 3)))
    torch.testing.assert_close(posed.logits, upright.logits)
    torch.testing.assert_close(posed.heatmaps(), torch.rot90(upright.heatmaps(), turn, (-2, -1)))
    torch.testing.assert_close(posed.prototypes, torch.rot90(upright.prototypes, turn, (-2, -1)))


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_without_sharing_they_are_not(extractor: str) -> None:
    model = make_site(quarter_turns=False, extractor=extractor)
    images = torch.rand(1, 3, 32, 32, dtype=torch.float64, generator=make_rng(3))
    upright, posed = model.explain(images), model.explain(torch.rot90(images, 1, (2, 3)))
    assert not torch.allclose(posed.heatmaps(), torch.rot90(upright.heatmaps(), 1, (-2, -1)), rtol=0.1)


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_no_pictures_give_no_maps(extractor: str) -> None:
    explanation = make_site(extractor=extractor).explain(torch.zeros(0, 3, 32, 32, dtype=torch.float64))
    assert explanation.heatmaps().shape == (0, 4, 32, 32)


def test_self_consistency_over_quarter_turns_is_one() -> None:
    model = make_site().float()
    images = torch.rand(4, 3, 32, 32, generator=make_rng(4))
    found = self_consistency(
        model,
        images,
        torch.zeros(4, dtype=torch.int64),
        family=QuarterTurns(),
        n_transforms=2,
        rng=make_rng(5),
    )
    assert found.raw.value == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_the_black_box_of_shared_kernels_answers_the_same_however_turned(extractor: str) -> None:
    options = {"extractor_options": SHARED, "encoder_of": "spatial", "encoder_options": SHARED}
    model = disturbed(BlackBox(extractor, 5, **options)).double().eval()
    images = torch.rand(2, 3, 32, 32, dtype=torch.float64, generator=make_rng(6))
    torch.testing.assert_close(model(torch.rot90(images, 1, (2, 3))), model(images))


def test_shared_kernels_have_a_quarter_of_the_parameters() -> None:
    plain, shared = (Layers(quarter_turns).block(64, 64) for quarter_turns in (False, True))
    assert n_parameters(plain) == TURNS * n_parameters(shared)


@pytest.mark.parametrize("build", [lambda: C4Conv2d(6, 8), lambda: C4BatchNorm2d(6)])
def test_a_width_that_is_no_multiple_of_four_is_an_error(build: Callable[[], nn.Module]) -> None:
    with pytest.raises(ConfigError, match="multiple of 4"):
        build()
