"""Galleries of training pictures, and the decoder that draws them: the model is asked, and stays as it is."""

import pytest
import torch

from torchsite.data import Dataset
from torchsite.errors import NotApplicableError
from torchsite.model import SITE
from torchsite.randomness import make_rng
from torchsite.training import TrainingConfig, fit
from torchsite.training.gallery import choose, make_gallery
from torchsite.training.reconstruction import reconstruction_loss, train_decoder

OPTIONS = {"depth": 6, "widths": (8, 8, 8), "common": 8}
SHAPE = (3, 16, 24)


def site(**options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return SITE("pyramid", "lateral", 3, image_shape=SHAPE, extractor_options=OPTIONS, **options)


def data(n=60, multi_hot=None):
    rng = make_rng(0, "pictures")
    smooth = torch.nn.functional.interpolate(
        torch.rand(n, 3, 3, 4, generator=rng), SHAPE[1:], mode="bilinear"
    )
    images = (smooth * 255).round().to(torch.uint8)
    return Dataset(
        images, torch.arange(n) % 3, ("a", "b", "c"), name="smooth", split="train", multi_hot=multi_hot
    )


def unchanged(model, work):
    """What `work` gives; weights, statistics, gradients and modes of the model must stay as they are."""
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = work()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(part.training for part in model.modules())
    return found


def test_a_gallery_leaves_the_model_as_it_is_and_has_pictures_of_all_classes():
    model, pictures = site(), data()
    gallery = unchanged(
        model, lambda: make_gallery(model, pictures, rng=make_rng(0), per_class=4, n_probes=16)
    )
    assert gallery.labels.bincount().tolist() == [4, 4, 4]
    assert (gallery.source, gallery.drawn) == ("smooth/train", "photographs")
    for picture, label in zip(gallery.pictures, gallery.labels, strict=True):
        rows = (pictures.images == picture).flatten(1).all(1).nonzero()[:, 0]
        assert (pictures.labels[rows] == label).any()
    again = make_gallery(model, pictures, rng=make_rng(0), per_class=4, n_probes=16)
    assert torch.equal(again.pictures, gallery.pictures)


def test_exemplars_are_those_that_meet_the_prototypes():
    """A greedy choice meets the probes at least as well as any other choice of its first step."""
    scores = torch.rand(40, 30, generator=make_rng(0))
    chosen = choose(scores, 5)
    assert len(chosen.unique()) == 5
    assert int(chosen[0]) == int(scores.sum(0).argmax())
    met = scores[:, chosen].amax(1).mean()
    for seed in range(20):
        others = torch.randperm(30, generator=make_rng(seed))[:5]
        assert met > scores[:, others].amax(1).mean()
    assert choose(scores, 99).sort().values.tolist() == list(range(30))


@pytest.mark.slow
def test_a_decoder_learns_and_leaves_the_model_as_it_is():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = SITE(torch.nn.Conv2d(3, 12, 2, stride=2), "lateral", 3, image_shape=SHAPE)
    pictures = data()
    decoder = unchanged(model, lambda: train_decoder(model, pictures, rng=make_rng(0), steps=80))
    with torch.no_grad():
        images = pictures.images / 255
        drawn = decoder(model.eval().features(images))
        loss = float(reconstruction_loss(drawn, images))
        mean = float(reconstruction_loss(images.mean(0).expand_as(images), images))
        mixed = float(reconstruction_loss(drawn.roll(1, 0), images))
    assert drawn.shape == images.shape
    assert 0 <= float(drawn.min()) <= float(drawn.max()) <= 1
    assert loss < 0.7 * mean  # closer than the mean picture, which knows nothing of the features
    assert loss < 0.7 * mixed
    assert not any(parameter.requires_grad for parameter in decoder.parameters())
    alone = decoder(model.features(images[:1]))
    torch.testing.assert_close(alone, drawn[:1])


def test_reconstructed_exemplars_are_not_the_pictures():
    model, pictures = site(), data()
    plain, drawn = (
        unchanged(
            model,
            lambda kind=kind: make_gallery(
                model, pictures, rng=make_rng(0), per_class=2, reconstructed=kind, decoder_steps=5
            ),
        )
        for kind in (False, True)
    )
    assert torch.equal(plain.keys, drawn.keys)
    assert drawn.drawn == "reconstructions"
    assert not torch.equal(plain.pictures, drawn.pictures)


def test_where_several_labels_are_true_each_has_exemplars():
    multi_hot = torch.zeros(60, 3, dtype=torch.bool)
    multi_hot[:, 0], multi_hot[::2, 1], multi_hot[:6, 2] = True, True, True
    gallery = make_gallery(
        site(multi_label=True), data(multi_hot=multi_hot), rng=make_rng(0), per_class=8, n_candidates=10
    )
    assert gallery.labels.bincount().tolist() == [8, 8, 6]


def test_pixels_need_no_gallery():
    digits = SITE("identity", "lateral", 3, image_shape=SHAPE)
    with pytest.raises(NotApplicableError):
        make_gallery(digits, data(), rng=make_rng(0))


def test_training_on_drops_a_gallery_of_weights_that_were(tmp_path):
    model = site()
    model.gallery = make_gallery(model, data(), rng=make_rng(0), per_class=1)
    config = TrainingConfig(epochs=1, batch_size=20, n_validation=4, precision="float32")
    fitted = fit(model, data(), config, validation=data(12), folder=tmp_path)
    assert fitted.model.gallery is None
