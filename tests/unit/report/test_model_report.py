"""A model's report: one file without a network that shows what was found, and nothing else."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure
from report_makers import CLASSES, black_box, blobs, examined

from torchsite.errors import DataError
from torchsite.evaluation import illustrate
from torchsite.model import SITE
from torchsite.report import write_report
from torchsite.report.findings import findings, key_figures, verdicts
from torchsite.report.page import svg
from torchsite.results import Result

VOID = {"meta", "br", "img"}


class Reader(HTMLParser):
    """Collects identifiers, links and tags that were left open."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found[name] for name in ("href", "src", "xlink:href") if name in found]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def html(case, shown, tmp_path_factory):
    return write_report(case[2], shown, tmp_path_factory.mktemp("out") / "report.html").read_text()


def test_the_page_is_whole_and_asks_nothing_of_a_network(html):
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    assert all(link.startswith(("#", "data:")) for link in reader.links)
    assert {link[1:] for link in reader.links if link.startswith("#")} <= set(reader.ids)
    assert "http" not in html
    assert "url(http" not in html


def test_names_of_classes_are_text_and_never_markup(html):
    assert "<b>odd</b>" not in html
    assert "&lt;b&gt;odd&lt;/b&gt;" in html


def test_the_numbers_travel_in_the_page(html, case):
    (carried,) = re.findall(r'<script type="application/json" id="result">(.*?)</script>', html, re.DOTALL)
    found = Result(**json.loads(carried))
    assert found.values["accuracy"] == case[2].values["accuracy"]
    assert found.config["data"] == "blobs/test"


def test_a_report_has_a_chapter_for_all_that_was_found(html, case):
    chapters = re.findall(r'<section id="(\w+)">', html)
    expected = ["data", "training", "accuracy", "calibration", "consistency", "methods", "mistakes"]
    expected += ["classes"] if isinstance(case[0], SITE) else []
    assert sorted(chapters) == sorted(expected)
    for chapter in chapters:
        assert f'<a href="#{chapter}">' in html


def test_confusion_and_curves_are_drawn_from_the_result(case, figures):
    result = case[2]
    written = [text.get_text() for text in figures["confusion"].axes[0].texts]
    counts = [str(n) for row in result.values["answers"]["untransformed"]["confusion"] for n in row if n]
    assert written == counts
    loss = figures["training"].axes[0].get_lines()[0]
    assert loss.get_xdata().tolist() == [19, 39, 59]
    assert loss.get_ydata().tolist() == [3.5, 2.5, 1.5]


def test_a_mistake_is_shown_with_the_reason_for_the_true_class_against_the_one_said(case, figures):
    model, data, result = case
    if not isinstance(model, SITE):
        pytest.skip("a black box gives no reasons")
    first = result.values["mistakes"]["untransformed"][0]
    axes = figures["mistakes"].axes[3]
    images = data.images[first["row"]][None].float() / 255
    expected = model.explain(images).contrast(first["label"], first["predicted"])[0]
    np.testing.assert_allclose(np.asarray(axes.get_images()[0].get_array()), expected.numpy(), atol=1e-6)
    assert CLASSES[first["label"]] in axes.get_title()


def test_other_pictures_than_those_examined_are_refused(case):
    model, _, result = case
    with pytest.raises(DataError):
        illustrate(model, blobs(seed=1), result)


@pytest.mark.slow
def test_a_report_without_methods_log_and_training_data_is_shorter(tmp_path):
    model, data = black_box(), blobs()
    result = examined(model, data, methods=())
    shown = illustrate(model, data, result)
    html = write_report(result, shown, tmp_path / "short.html").read_text()
    assert 'id="methods"' not in html
    assert 'id="training"' not in html


def test_findings_say_what_the_figures_are(case):
    model, _, result = case
    said = " ".join(findings(result))
    assert f"{result.values['accuracy']['untransformed']['value']:.1%}" in said
    assert ("black box" in said) is not isinstance(model, SITE)
    names = [name for name, _, _ in key_figures(result)]
    assert ("self-consistency, calibrated" in names) is isinstance(model, SITE)


@pytest.mark.parametrize(
    ("value", "null", "word"),
    [
        (0.99, 0.1, "Good"),
        (0.7, 0.1, "Fair"),
        (0.7, 0.6, "Bad"),
        (0.5, 0.6, "Bad"),
        (None, 0.1, "Not measured"),
    ],
)
def test_a_verdict_is_of_the_way_from_no_knowledge_to_perfect(case, value, null, word):
    scores = {"raw": {"value": value}, "floor": {"value": null}}
    said = verdicts(replace(case[2], values=case[2].values | {"self_consistency": scores}))
    assert next(text for text in said if "map moves along" in text).startswith(f"{word}: ")


def test_a_perfect_model_is_said_to_make_no_mistake(case):
    result = case[2]
    perfect = json.loads(json.dumps(result.values["answers"]))
    perfect["untransformed"]["confusion"] = [[3, 0, 0], [0, 4, 0], [0, 0, 5]]
    assert any(
        "no mistake" in s for s in findings(replace(result, values=result.values | {"answers": perfect}))
    )


def test_black_becomes_the_colour_of_the_text_and_identifiers_differ():
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([0, 1], color="black")
    one, other = (svg(figure, name, 'a "label"') for name in ("one", "other"))
    assert "#000000" not in one
    assert "currentColor" in one
    assert 'aria-label="a &quot;label&quot;"' in one
    ids = [set(re.findall(r' id="([^"]+)"', text)) for text in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]
