"""Laws of the model: the explanation is the prediction, and nothing but the picture decides it."""

from copy import deepcopy

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from torch import nn

import experiments  # noqa: F401  # its forms of the parts obey the same laws
import trunk_generator  # noqa: F401  # as does that of tests
from torchsite.model import EXTRACTORS, GENERATORS, SITE, BlackBox
from torchsite.randomness import make_rng

EXTRACTOR_OPTIONS = {
    "identity": {},
    "small_cnn": {"depth": 3, "widths": (4, 5, 6)},
    "pyramid": {"depth": 3, "widths": (4, 5, 6, 7), "common": 4},
}
GENERATOR_OPTIONS = {
    "trunk": {"widths": (4, 5), "code": 6, "trunk": (4, 5, 6)},
    "lateral": {"widths": (4, 5), "code": 6, "trunk": (4, 5)},
    "spatial": {"widths": (4, 5), "trunk": (4, 5)},
    "two_scales": {"widths": (4, 5), "trunk": (4, 5)},
    "shared_patterns": {"widths": (4, 5), "trunk": (4, 5)},
    "constant": {},
}
BOUND = {torch.float32: 1e-4, torch.float64: 1e-10}
PRETRAINED = ("efficientnet", "two_scales")  # which take colour pictures of some size only
FREE = sorted(name for name in EXTRACTORS if not name.startswith(PRETRAINED))
PAIRS = [(extractor, generator) for extractor in FREE for generator in GENERATORS]

few = settings(max_examples=25, deadline=None)
extractors = st.sampled_from(FREE)
generators = st.sampled_from(sorted(GENERATORS))
class_counts = st.sampled_from([2, 3, 10, 101])
shapes = st.tuples(st.sampled_from([1, 3, 5]), st.integers(9, 33), st.integers(9, 33))
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**31)


def make_site(extractor, generator, n_classes=4, shape=(3, 16, 16), seed=0, dtype=torch.float32, **options):
    """A small random model whose batch norms have random statistics, as if it had been trained."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = SITE(
            extractor,
            generator,
            n_classes,
            image_shape=shape,
            extractor_options=EXTRACTOR_OPTIONS.get(extractor) if isinstance(extractor, str) else None,
            generator_options=GENERATOR_OPTIONS.get(generator) if isinstance(generator, str) else None,
            **options,
        )
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                nn.init.normal_(module.running_mean)
                nn.init.uniform_(module.running_var, 0.5, 2)
                nn.init.normal_(module.weight)
                nn.init.normal_(module.bias)
        return model.to(dtype).eval()


def pictures(n, shape=(3, 16, 16), seed=0, dtype=torch.float32):
    return torch.rand(n, *shape, generator=make_rng(seed, "pictures"), dtype=dtype)


def completeness_error(sums, logits):
    return float(((sums - logits).abs() / logits.abs().clamp_min(1)).max())


@few
@given(extractors, generators, class_counts, shapes, dtypes, seeds)
def test_heatmaps_and_contributions_sum_to_the_logits(extractor, generator, n_classes, shape, dtype, seed):
    model = make_site(extractor, generator, n_classes, shape, seed, dtype)
    found = model.explain(pictures(2, shape, seed, dtype))
    assert found.heatmaps().shape == (2, n_classes, *shape[1:])
    assume(found.logits.std() > 0)  # a random network may be dead
    assert completeness_error(found.heatmaps().sum((-2, -1)), found.logits) <= BOUND[dtype]
    assert completeness_error(found.contributions.sum((2, 3, 4)), found.logits) <= BOUND[dtype]


@few
@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 40), st.integers(1, 40), dtypes, seeds)
@example(rows=2, cols=2, height=3, width=1, dtype=torch.float64, seed=0)
@example(rows=3, cols=5, height=2, width=7, dtype=torch.float64, seed=0)
@example(rows=3, cols=1, height=2, width=1, dtype=torch.float64, seed=0)
def test_heatmaps_of_any_size_sum_to_the_logits(rows, cols, height, width, dtype, seed):
    from torchsite.model.explanation import enlarge

    evidence = torch.randn(2, 3, rows, cols, generator=make_rng(seed), dtype=dtype)
    maps = enlarge(evidence, (height, width))
    assert maps.shape == (2, 3, height, width)
    assert completeness_error(maps.sum((-2, -1)), evidence.sum((-2, -1))) <= BOUND[dtype]


@few
@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 5), seeds)
def test_for_whole_factors_enlarging_is_bilinear_and_divides_by_the_factor_squared(rows, cols, factor, seed):
    from torchsite.model.explanation import enlarge

    evidence = torch.randn(1, 2, rows, cols, generator=make_rng(seed), dtype=torch.float64)
    plain = torch.nn.functional.interpolate(
        evidence, scale_factor=factor, mode="bilinear", align_corners=False
    )
    found = enlarge(evidence, (rows * factor, cols * factor))
    torch.testing.assert_close(found, plain / factor**2, rtol=1e-12, atol=1e-12)


@few
@given(extractors, class_counts, seeds, st.data())
def test_why_sums_to_the_difference_of_two_logits(extractor, n_classes, seed, data):
    model = make_site(extractor, "trunk", n_classes, (3, 16, 12), seed, torch.float64)
    found = model.explain(pictures(3, (3, 16, 12), seed, torch.float64))
    a, b = (data.draw(st.integers(0, n_classes - 1)) for _ in range(2))
    difference = found.logits[:, a] - found.logits[:, b]
    assert completeness_error(found.contrast(a, b).sum((-2, -1)), difference) <= 1e-10
    assert torch.equal(found.contrast(a, b), -found.contrast(b, a))
    torch.testing.assert_close(found.contrast(a, b), found.heatmaps(classes=a) - found.heatmaps(classes=b))


@few
@given(extractors, generators, seeds)
def test_no_picture_in_a_batch_affects_another(extractor, generator, seed):
    model = make_site(extractor, generator, seed=seed)
    images, others = pictures(4, seed=seed), pictures(4, seed=seed + 1)
    others[2] = images[2]
    first, second = model.explain(images), model.explain(others)
    assert torch.equal(first.logits[2], second.logits[2])
    assert torch.equal(first.heatmaps()[2], second.heatmaps()[2])
    alone = model.explain(images[2:3])
    torch.testing.assert_close(alone.logits[0], first.logits[2], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("extractor", "generator"), PAIRS)
def test_calling_the_model_gives_the_logits_of_its_explanation_bit_for_bit(extractor, generator):
    model = make_site(extractor, generator)
    images = pictures(5)
    with torch.no_grad():
        assert torch.equal(model(images), model.explain(images).logits)
    assert torch.equal(deepcopy(model)(images), model(images))


@few
@given(extractors, generators, seeds)
def test_the_memory_layout_of_the_pictures_does_not_matter(extractor, generator, seed):
    model = make_site(extractor, generator, seed=seed, dtype=torch.float64)
    images = pictures(2, seed=seed, dtype=torch.float64)
    with torch.no_grad():
        last = model(images.contiguous(memory_format=torch.channels_last))
        torch.testing.assert_close(last, model(images), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("extractor", "generator"), PAIRS)
def test_every_parameter_gets_a_gradient(extractor, generator):
    model = make_site(extractor, generator).train()
    run = model.run(pictures(6))
    (run.logits.square().mean() + run.raw_prototypes.square().mean()).backward()
    without = [
        name for name, p in model.named_parameters() if p.grad is None or not bool((p.grad != 0).any())
    ]
    assert not without


@pytest.mark.parametrize("extractor", FREE)
def test_every_parameter_of_the_black_box_gets_a_gradient(extractor):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BlackBox(
            extractor, 3, image_shape=(3, 16, 16), extractor_options=EXTRACTOR_OPTIONS[extractor]
        )
    torch.nn.functional.cross_entropy(model(pictures(6)), torch.tensor([0, 1, 2, 0, 1, 2])).backward()
    assert all(p.grad is not None and bool((p.grad != 0).any()) for p in model.parameters())


@few
@given(extractors, st.sampled_from(["sigmoid", "tanh"]), seeds)
def test_features_and_prototypes_keep_their_bounds(extractor, activation, seed):
    model = make_site(extractor, "trunk", seed=seed, activation=activation)
    found = model.explain(10 * pictures(2, seed=seed) if extractor != "identity" else pictures(2, seed=seed))
    low = 0.0 if activation == "sigmoid" else -1.0
    for values in (found.features, found.prototypes):
        assert values.min() >= low
        assert values.max() <= 1
    assert found.prototypes.shape == (2, 4, *found.features.shape[1:])
