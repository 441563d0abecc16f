"""Galleries: a prototype that is the features of an exemplar shows that exemplar, where it stands."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from torchsite.errors import ShapeError, WeightsError
from torchsite.model import SITE, shipped_models
from torchsite.model.gallery import GALLERY_FILE, Gallery, as_keys
from torchsite.randomness import make_rng

OPTIONS = {"depth": 3, "widths": (4, 4, 4), "common": 4}
N_CLASSES, EACH = 3, 4


def site(shape=(3, 32, 32), **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        made = SITE("pyramid", "lateral", N_CLASSES, image_shape=shape, extractor_options=OPTIONS, **options)
    return made.eval()


def pixels(n=N_CLASSES * EACH, shape=(3, 32, 32), seed=0):
    rng = make_rng(seed, "pictures")
    rough = torch.rand(n, shape[0], 4, 4, generator=rng)
    smooth = torch.nn.functional.interpolate(rough, shape[1:], mode="bicubic").clamp(0, 1)
    return (smooth * 255).round().to(torch.uint8)


def with_gallery(model):
    pictures, labels = pixels(shape=model.config.image_shape), torch.arange(N_CLASSES).repeat(EACH)
    with torch.no_grad():
        keys = as_keys(model.features(pictures / 255)).half()
    model.gallery = Gallery(pictures, labels, keys, "made up")
    return model


def features_of(model, rows):
    with torch.no_grad():
        return model.features(model.gallery.pictures[rows] / 255)


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 20, 26), (3, 16, 64)])
def test_features_of_an_exemplar_show_that_exemplar(shape):
    model = with_gallery(site(shape))
    for row in range(len(model.gallery)):
        label = int(model.gallery.labels[row])
        prototypes = torch.randn(1, N_CLASSES, *model.feature_shape, generator=make_rng(row))
        prototypes[0, label] = features_of(model, [row])[0]
        found = model.gallery.nearest(prototypes)
        assert int(found.exemplars[0, label]) == row
        assert found.shifts[0, label].tolist() == [0, 0]
        assert float(found.likeness[0, label]) == pytest.approx(1, abs=2e-3)  # keys are half precision
        shown = model.gallery.show(prototypes)[0, label]
        assert torch.equal((shown * 255).round().to(torch.uint8), model.gallery.pictures[row])


def noise_gallery():
    """Exemplars whose keys have nothing to do with each other."""
    keys = as_keys(torch.randn(N_CLASSES * EACH, 5, 8, 8, generator=make_rng(2)))
    return Gallery(pixels(), torch.arange(N_CLASSES).repeat(EACH), keys.half(), "noise")


@pytest.mark.parametrize(("down", "right"), [(2, 0), (-1, 2), (0, -2), (0, 0)])
def test_an_exemplar_is_shown_where_its_prototype_stands(down, right):
    gallery, row = noise_gallery(), 4
    label = int(gallery.labels[row])
    there = tuple(slice(max(0, by), 8 + min(0, by)) for by in (down, right))
    source = tuple(slice(max(0, -by), 8 - max(0, by)) for by in (down, right))
    moved = torch.zeros(1, N_CLASSES, 5, 8, 8)
    moved[(0, slice(None), slice(None), *there)] = gallery.keys[row][(slice(None), *source)].float()
    found = gallery.nearest(moved)
    assert int(found.exemplars[0, label]) == row
    assert found.shifts[0, label].tolist() == [down, right]
    shown = gallery.show(moved)[0, label]
    inside, origin = ((slice(4 * s.start, 4 * s.stop) for s in part) for part in (there, source))
    bare = torch.ones(32, 32, dtype=torch.bool)
    place = tuple(inside)
    bare[place] = False
    expected = gallery.pictures[row][(slice(None), *origin)] / 255
    torch.testing.assert_close(shown[(slice(None), *place)], expected)
    assert (shown[:, bare] == 128 / 255).all()


def test_a_class_is_shown_by_its_own_exemplars_and_pictures_do_not_affect_each_other():
    gallery = noise_gallery()
    prototypes = torch.randn(6, N_CLASSES, 5, 16, 16, generator=make_rng(3))
    found, shown = gallery.nearest(prototypes), gallery.show(prototypes)
    for label in range(N_CLASSES):
        assert (gallery.labels[found.exemplars[:, label]] == label).all()
    for i in range(6):
        alone = gallery.nearest(prototypes[i : i + 1])
        assert torch.equal(alone.exemplars[0], found.exemplars[i])
        assert torch.equal(alone.shifts[0], found.shifts[i])
        assert torch.equal(gallery.show(prototypes[i : i + 1])[0], shown[i])
    assert len(found.exemplars.unique()) > N_CLASSES  # other prototypes, other exemplars


def test_saved_and_loaded_galleries_show_the_same(tmp_path):
    model = with_gallery(site())
    model.save_pretrained(tmp_path)
    again = SITE.from_pretrained(tmp_path)
    images = pixels(4, seed=3) / 255
    before, after = (one.explain(images) for one in (model, again))
    for i in range(4):
        assert torch.equal(before.prototype_pictures(i), after.prototype_pictures(i))
    assert (again.gallery.source, again.gallery.drawn) == ("made up", "photographs")
    assert set(again.state_dict()) == set(site().state_dict())  # a gallery is no weight


def test_without_a_gallery_nothing_is_shown_and_pixels_need_none(tmp_path):
    plain = site()
    assert plain.explain(pixels(1) / 255).prototype_pictures(0) is None
    digits = SITE("identity", "lateral", 3, image_shape=(1, 12, 12)).eval()
    explanation = digits.explain(torch.rand(2, 1, 12, 12))
    assert torch.equal(explanation.prototype_pictures(1), explanation.prototypes[1])
    with_gallery(site()).save_pretrained(tmp_path)
    plain.save_pretrained(tmp_path)  # in the place of the other: its gallery must go
    assert SITE.from_pretrained(tmp_path).gallery is None


def test_a_gallery_of_other_weights_is_refused(tmp_path):
    with_gallery(site()).save_pretrained(tmp_path / "mine")
    other = site()
    with torch.no_grad():
        next(other.parameters()).add_(1)
    other.save_pretrained(tmp_path / "other")
    (tmp_path / "mine" / GALLERY_FILE).rename(tmp_path / "other" / GALLERY_FILE)
    with pytest.raises(WeightsError, match=r"weights.*torchsite gallery"):
        SITE.from_pretrained(tmp_path / "other")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t | {"keys": t["keys"][:, :2]}, "gallery"),
        (lambda t: t | {"pictures": t["pictures"][:, :1]}, "gallery"),
        (lambda t: t | {"pictures": t["pictures"][:5]}, "gallery"),
        (lambda t: t | {"labels": t["labels"] + 1}, "classes"),
        (lambda t: t | {"labels": t["labels"] * 0}, "classes"),
        (lambda t: t | {"keys": t["keys"] * torch.inf}, "finite"),
        (lambda t: {"keys": t["keys"]}, "gallery"),
        (lambda t: t | {"more": t["keys"] + 1}, "gallery"),
    ],
)
def test_files_that_are_no_gallery_of_the_model_are_refused(tmp_path, change, words):
    with_gallery(site()).save_pretrained(tmp_path)
    about = {"source": "x", "drawn": "photographs", "weights": "y"}
    changed = {name: value.contiguous() for name, value in change(load_file(tmp_path / GALLERY_FILE)).items()}
    save_file(changed, tmp_path / GALLERY_FILE, metadata=about)
    with pytest.raises(WeightsError, match=words):
        SITE.from_pretrained(tmp_path)
    (tmp_path / GALLERY_FILE).write_bytes(b"no tensors")
    with pytest.raises(WeightsError, match="gallery"):
        SITE.from_pretrained(tmp_path)


def test_an_unfit_gallery_is_no_gallery():
    keys = torch.zeros(2, 3, 4, 4)
    with pytest.raises(ShapeError):
        Gallery(pixels(1), torch.arange(2), keys, "x")
    with pytest.raises(ShapeError, match="drawn"):
        Gallery(pixels(2), torch.arange(2), keys, "x", "sketches")
    with pytest.raises(ShapeError, match="class"):
        Gallery(pixels(2), torch.arange(2), keys, "x").nearest(torch.ones(1, 3, 3, 4, 4))


def test_the_shipped_model_of_colour_pictures_has_a_gallery():
    model = SITE.from_pretrained("cifar10")
    assert (shipped_models()["cifar10"] / GALLERY_FILE).stat().st_size < 3_000_000
    assert model.gallery.drawn == "reconstructions"  # the photographs of CIFAR-10 are under no licence
    explanation = model.explain(torch.rand(1, 3, 32, 32, generator=make_rng(0)))
    assert explanation.prototype_pictures(0).shape == (10, 3, 32, 32)
