"""Self-explaining peers, each with its law: CAM, a bag of patches, B-cos, prototypes of parts."""

import pytest
import torch

from experiments.peers import BCos, PrototypeParts
from experiments.peers.b_cos import BCosConv2d
from torchsite.attribution import METHODS
from torchsite.data import Dataset
from torchsite.metrics import as_explainer
from torchsite.model import SITE, load
from torchsite.randomness import make_rng
from torchsite.training import TrainingConfig, fit


def peer(extractor, **options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return (
            SITE(
                extractor,
                "constant",
                3,
                image_shape=(3, 16, 16),
                extractor_options=options,
                pretrained=False,
            )
            .double()
            .eval()
        )


def pictures(n=4, side=16):
    return torch.rand(n, 3, side, side, generator=make_rng(0), dtype=torch.float64)


def test_constant_prototypes_are_class_activation_maps():
    """logit = bias-free linear layer of the summed features, map = the same layer cell by cell."""
    model = peer("small_cnn", widths=(4, 5, 6), depth=7)
    found = model.explain(pictures())
    weights = model.generator.cells.tanh() * model.product_scale
    maps = torch.einsum("kd,ndhw->nkhw", weights, model.features(pictures()))
    torch.testing.assert_close(found.evidence, maps)
    torch.testing.assert_close(found.logits, model.features(pictures()).sum((-2, -1)) @ weights.T)
    assert torch.equal(found.prototypes[0], found.prototypes[1])


def test_a_bag_of_patches_is_additive_over_them():
    """What is far away changes neither evidence nor, beyond its own evidence, the logit."""
    model = peer("two_scales_parts", parts=3, hidden=8)
    images = pictures(side=48)
    changed = images.clone()
    changed[..., :8, :8] = 0.5
    before, after = model.explain(images), model.explain(changed)
    difference = (before.evidence - after.evidence).abs().amax((0, 1))
    reach = 2 + 3  # cells of four pixels: of the part itself, and as far as a patch of 19 reaches out of it
    assert difference[:2, :2].max() > 0
    assert difference[reach:].max() == 0
    assert difference[:, reach:].max() == 0
    assert all(parameter.requires_grad for group in groups(model) for parameter in group.parameters)


def groups(model):
    return model.feature_extractor.parameter_groups()


def b_cos(**options):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        small = {"extractor_options": {"widths": (4, 5, 6), "depth": 4}, "width": 8}
        model = BCos("small_cnn", 3, image_shape=(3, 16, 16), **small, **options)
        model(pictures(32).float())  # norms that have seen something
        return model.double().eval()


def test_a_b_cos_layer_is_its_formula():
    """|cos|^(B-1) ŵᵀx of every patch, written out patch by patch."""
    for b in (1.5, 2.0):
        layer, maps = BCosConv2d(2, 4, b=b).double(), torch.randn(3, 2, 5, 6, generator=make_rng(0)).double()
        patches = torch.nn.functional.unfold(maps, 3, padding=1)
        kernels = torch.nn.functional.normalize(layer.weight.flatten(1), dim=1)
        linear = torch.einsum("kp,npu->nku", kernels, patches)
        cosine = linear / patches.norm(dim=1, keepdim=True)
        expected = cosine.abs() ** (b - 1) * linear
        torch.testing.assert_close(layer(maps).flatten(2), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("relative", [False, True])
def test_the_logit_of_a_b_cos_head_is_exactly_w_of_z_times_z(relative):
    """W(z) · [z, 1 - z] without a rest, and W(z) is the derivative while the factors are constants."""
    model, images = b_cos(), pictures()
    logits = model(images)
    logits = logits - logits.mean(1, keepdim=True) if relative else logits
    assert logits.std() > 1e-3
    for label in range(3):
        classes = torch.full((4,), label)
        found = model.contributions(model.coded(images), classes, relative)
        assert found.shape == (4, 8, 4, 4)
        torch.testing.assert_close(found.sum((1, 2, 3)), logits[:, label])
        maps = model.explain(images, relative=relative).heatmaps(size=(16, 16), classes=classes)
        torch.testing.assert_close(maps.sum((1, 2)), logits[:, label])
    torch.testing.assert_close(model.explain(images, relative=relative).logits, logits)


def test_explaining_leaves_a_b_cos_head_as_it_was():
    model = b_cos().train()
    layers = [module for module in model.modules() if isinstance(module, BCosConv2d)]
    model.explain(pictures()).heatmaps(classes=torch.zeros(4, dtype=torch.int64))
    assert model.training
    assert not any(layer.constant for layer in layers)
    model(pictures()).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def parts(**options):
    with torch.random.fork_rng():
        torch.manual_seed(2)
        small = {"extractor_options": {"widths": (4, 5, 6), "depth": 4}, "n_parts": 2}
        return PrototypeParts("small_cnn", 3, image_shape=(3, 16, 16), **small, **options).double().eval()


def test_parts_are_found_where_features_equal_them():
    """A cell that is a part looks like it as much as any can, and the logit is the formula's."""
    model, images = parts(), pictures()
    features = model.extract(images).sigmoid()
    with torch.no_grad():
        model.parts[3] = features[1, :, 2, 0]
    found = model.explain(images)
    assert int(found.similarities[1, 3].flatten().argmax()) == 2 * features.shape[-1]
    torch.testing.assert_close(found.similarities[1, 3].max(), torch.tensor(1 / 1e-4).double().log())
    distances = (features[:, None] - model.parts[None, :, :, None, None]).square().sum(2)
    best = ((distances + 1) / (distances + 1e-4)).log().amax((-2, -1))
    own = torch.tensor([[1, 1, -0.5, -0.5, -0.5, -0.5], [-0.5, -0.5, 1, 1, -0.5, -0.5], [-0.5] * 4 + [1, 1]])
    torch.testing.assert_close(model(images), best @ own.double().T)


def test_maps_of_parts_are_weighed_sums_of_similarities():
    model, images, classes = parts(zero_sum=True), pictures(), torch.tensor([0, 1, 2, 0])
    found = model.explain(images)
    assert float(found.activations.sum(1).abs().max()) < 1e-9
    maps = found.heatmaps(classes=classes)
    torch.testing.assert_close(maps, found.activations[torch.arange(4), classes])
    torch.testing.assert_close(found.logits, model(images) - model(images).mean(1, keepdim=True))


@pytest.mark.parametrize("make", [b_cos, parts])
def test_peers_keep_the_contract_and_come_back_bit_for_bit(make, tmp_path):
    model, images, classes = make().float(), pictures().float(), torch.tensor([0, 1, 2, 0])
    maps = METHODS["self_explanation"](model)(images, classes)
    assert maps.shape == (4, 16, 16)
    torch.testing.assert_close(as_explainer(model)(images, classes), maps)
    again = load(model.save_pretrained(tmp_path / "peer"))
    assert type(again) is type(model)
    assert torch.equal(again(images), model(images))
    larger = torch.rand(2, 3, 32, 32, generator=make_rng(1))
    assert METHODS["self_explanation"](again)(larger, classes[:2]).shape == (2, 32, 32)


@pytest.mark.parametrize("make", [b_cos, parts])
def test_peers_learn_in_the_one_loop(make, tmp_path):
    rng = make_rng(0)
    labels = torch.arange(96) % 3
    images = torch.randint(0, 100, (96, 3, 16, 16), generator=rng, dtype=torch.uint8)
    for label in range(3):
        images[labels == label, label] += 120
    data = Dataset(images, labels, ("red", "green", "blue"))
    model = make(classes=data.classes).float()
    config = TrainingConfig(epochs=12, batch_size=24, terms=(), precision="32")
    fit(model, data, config, validation=data, folder=tmp_path)
    right = (model(data.images / 255).argmax(1) == labels).float().mean()
    assert float(right) > 0.8
