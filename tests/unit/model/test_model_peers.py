"""Self-explaining peers that are SITE with simpler parts: a CAM network, and a bag of patches."""

import pytest
import torch

from torchsite.errors import ConfigError
from torchsite.model import SITE
from torchsite.randomness import make_rng


def peer(extractor, **options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return (
            SITE(extractor, "constant", 3, image_shape=(3, 16, 16), extractor_options=options).double().eval()
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
    model = peer("local", width=4, patch=10, depth=3)
    images = pictures(side=32)
    changed = images.clone()
    changed[..., :8, :8] = 0.5
    before, after = model.explain(images), model.explain(changed)
    difference = (before.evidence - after.evidence).abs().amax((0, 1))
    reach = 4 + 10 // 2 // 2 + 1  # cells of the part itself, and as far as a patch reaches out of it
    assert difference[:4, :4].max() > 0
    assert difference[reach:].max() == 0
    assert difference[:, reach:].max() == 0


def test_patches_have_sizes_that_convolutions_can_make():
    with pytest.raises(ConfigError, match="patch: expected 6, 10, 14"):
        peer("local", patch=9)
