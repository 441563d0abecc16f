"""Corners that show no frame, and parts that are hidden with a brush."""

import pytest
import torch
from web_makers import colours, job, noise_gallery, pose, seeded

from torchsite.model import SITE
from torchsite.web.engine import JobResult, answer
from torchsite.web.library import OWN, Library, Served
from torchsite.web.pictures import png
from torchsite.web.rendering import render
from torchsite.web.samples import samples_for

GRAD_CAM = ("grad_cam", "digits_black_box")


def some_pixels(seed=0, size=(28, 28)):
    return torch.rand(size, generator=torch.Generator().manual_seed(seed)) < 0.3


def test_corners_in_the_mean_colour_hide_the_frame(library):
    asked = [job(transform=pose(40)), job(transform=pose(40), corners="mean"), job(transform=pose(10, 0.2))]
    black, mean, other = (answer(library, one) for one in asked)
    still = asked[0].picture[None]
    torch.testing.assert_close(mean.images[1], asked[0].transform(still, fill="mean")[0])
    torch.testing.assert_close(black.images[1], asked[0].transform(still)[0])
    torch.testing.assert_close(other.images[1], asked[2].transform(still)[0])
    assert float((mean.images[1, 0, 0, 0] - still.mean()).abs()) < 1e-6


@torch.no_grad()
def test_what_the_brush_covers_is_the_sum_of_the_map_there(library):
    """For a picture that does not move, the logit falls to that of the picture with its mean colour there."""
    hidden = some_pixels()
    asked = job(transform=pose(), hidden=hidden, explainers=((OWN, "digits"), GRAD_CAM))
    found = answer(library, asked)
    without = torch.where(hidden, asked.picture.mean(), asked.picture)[None]
    for explainer in asked.explainers:
        scores, pair = found.pairs[explainer].scores.brushed, found.pairs[explainer]
        model = library[explainer[1]].model
        assert scores.covered == pytest.approx(float(pair.renewed[hidden].sum()), abs=1e-4)
        assert scores.total == pytest.approx(float(pair.renewed.sum()), abs=1e-4)
        assert scores.before == pytest.approx(float(model(asked.picture[None])[0, found.label]), abs=1e-4)
        assert scores.after == pytest.approx(float(model(without)[0, found.label]), abs=1e-4)
    assert found.hidden_share == pytest.approx(float(hidden.float().mean()))
    own = found.pairs[(OWN, "digits")].scores.brushed
    assert own.total == pytest.approx(own.before, abs=1e-3)  # the explanation is the prediction


def test_the_hidden_part_moves_with_the_picture():
    still, hidden, turn = torch.rand(3, 20, 20), some_pixels(1, (20, 20)), pose(90)
    images = torch.stack([still, turn(still[None])[0]])
    asked = job(still, turn, hidden=hidden)
    found = JobResult(asked, images, torch.zeros(2, 10), 0, None, {}, {})
    torch.testing.assert_close(found.covered, torch.rot90(hidden.float(), 1), atol=1e-5, rtol=0)
    torch.testing.assert_close(
        found.without(found.covered),
        torch.rot90(torch.where(hidden, still.mean((1, 2), True), still), 1, (1, 2)),
        atol=1e-5,
        rtol=0,
    )
    assert found.hidden_share == pytest.approx(float(hidden.float().mean()), abs=1e-4)


def test_nothing_hidden_changes_nothing_and_all_hidden_covers_all(library):
    none, every = torch.zeros(28, 28, dtype=torch.bool), torch.ones(28, 28, dtype=torch.bool)
    shown = answer(library, job(hidden=none))
    blank = answer(library, job(hidden=every, transform=pose()))
    first, second = (result.pairs[(OWN, "digits")].scores.brushed for result in (shown, blank))
    assert (first.covered, shown.hidden_share) == (0, 0)
    assert first.after == pytest.approx(first.before, abs=1e-5)
    assert second.covered == pytest.approx(second.total, abs=1e-4)


def test_learned_features_have_no_picture_but_those_of_a_gallery():
    pyramid = {"depth": 2, "widths": (4, 4, 4), "common": 4}
    make = lambda: SITE("pyramid", "lateral", 3, image_shape=(3, 32, 24), extractor_options=pyramid)  # noqa: E731
    models = {"learned": seeded(make), "gallery": seeded(make), "colours": colours()}
    models["gallery"].gallery = noise_gallery(models["gallery"])
    library = Library({n: Served(n, model, samples_for(model.config)) for n, model in models.items()})
    for name in models:
        picture = library[name].samples.images[0]
        found = answer(library, job(picture, model=name, explainers=((OWN, name),)))
        (detail,) = render(found).detail
        assert (detail.prototype is None) == (name == "learned")
        assert (detail.features is None) == (name != "colours")
        about = library.describe(library[name])
        assert about.pixels == (name == "colours")
        assert (about.gallery is not None) == (name == "gallery")
        if name == "gallery":
            shown = models[name].gallery.show(found.explanation.prototypes[1:])[0]
            assert detail.prototype == png(shown[detail.index])
            assert (about.gallery.source, about.gallery.drawn) == ("noise", "photographs")
