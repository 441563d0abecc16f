"""Pictures of explanations: what is drawn is what the explanation holds."""

import io

import numpy as np
import pytest
import torch
from matplotlib import rc_context
from PIL import Image

from torchsite.model import SITE
from torchsite.model.drawing import data_uri, draw_explanation, new_figure, png, show_heatmap
from torchsite.model.gallery import Gallery, as_keys

OPTIONS = {"widths": (2, 2), "code": 4, "trunk": (2, 2)}


KINDS = {"pixels": ("identity", 1), "learned": ("small_cnn", 3), "gallery": ("small_cnn", 3)}


@pytest.fixture(scope="module", params=list(KINDS))
def explained(request):
    extractor, channels = KINDS[request.param]
    options = {} if extractor == "identity" else {"extractor_options": {"widths": (2, 2, 2), "depth": 4}}
    model = SITE(extractor, n_classes=3, image_shape=(channels, 16, 16), generator_options=OPTIONS, **options)
    images = torch.rand(2, channels, 16, 16)
    if request.param == "gallery":
        pictures = torch.randint(256, (3, 3, 16, 16), dtype=torch.uint8)
        keys = as_keys(model.features(pictures / 255)).detach().half()
        model.gallery = Gallery(pictures, torch.arange(3), keys, "noise")
    return images, model.explain(images)


def test_an_explanation_is_drawn_with_a_panel_for_each_class(explained):
    _, explanation = explained
    figure = explanation.plot(1, n_classes=2)
    titles = [axes.get_title() for axes in figure.axes]
    strongest = explanation.logits[1].argsort(descending=True)[:2].tolist()
    assert titles[0] == f"seen as {explanation.classes[int(explanation.predicted[1])]}"
    names = [explanation.classes[label] for label in strongest]
    total = f"Σ = {float(explanation.logits[1, strongest[0]]):.2f}"
    if explanation.pixels_are_features or explanation.gallery is not None:
        assert titles[1:3] == names
    else:  # nothing can be shown of the prototypes, and nothing is made up
        assert titles[1] == f"{names[0]}: {total}"
        assert len(titles) == 3
    assert any(title.endswith(total) for title in titles)


def test_a_sheet_has_prototypes_above_and_evidence_below(explained):
    _, explanation = explained
    figure = draw_explanation(explanation, range(2))
    drawn = [axes.get_images()[0].get_array() for axes in figure.axes if axes.get_images()]
    pictured = explanation.prototype_pictures(0) is not None
    assert len(drawn) == 2 * (1 + 3 + 3 * pictured)
    first = 4 if pictured else 1
    best = explanation.heatmaps()[0, int(explanation.predicted[0])]
    np.testing.assert_allclose(np.asarray(drawn[first]), best.numpy(), rtol=1e-6)


def test_a_notebook_gets_pictures_that_need_no_network(explained):
    _, explanation = explained
    html = explanation._repr_html_()
    assert html.count("data:image/png;base64,") == 2
    assert "http" not in html


def test_a_heatmap_is_drawn_on_a_scale_symmetric_about_zero():
    figure, grid = new_figure(1, 1)
    show_heatmap(grid[0][0], torch.tensor([[-1.0, 3.0]]))
    assert grid[0][0].get_images()[0].get_clim() == (-3.0, 3.0)
    with Image.open(io.BytesIO(png(figure))) as picture:
        assert picture.format == "PNG"
    assert data_uri(figure).startswith("data:image/png")


def test_names_are_no_formulas():
    figure, grid = new_figure(1, 1, title="a$_$b")
    show_heatmap(grid[0][0], torch.zeros(2, 2), r"$\frac{$")
    grid[0][0].set_axis_on()
    grid[0][0].set_xticks([0, 1], ["$x$", "$_$"])
    svg = io.BytesIO()
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(svg, format="svg")
    for name in ("a$_$b", r"$\frac{$", "$x$", "$_$"):
        assert f">{name}</text>" in svg.getvalue().decode()
    assert png(figure)
