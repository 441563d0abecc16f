"""The page without a server: it answers as PyTorch does, moves, and sends nothing."""

import base64
import io
import json

import pytest
import torch
from PIL import Image

pytest.importorskip("playwright")
from hands import digit_on_paper, drag, draw_a_one, figure, pixels, settled, updates
from playwright.sync_api import expect

from torchsite.model import load
from torchsite.web.engine import Job, answer
from torchsite.web.library import OWN, Library, Served
from torchsite.web.pictures import hidden_pixels, png, read_picture
from torchsite.web.questions import Question
from torchsite.web.rendering import render
from torchsite.web.samples import samples_for

POSES = [
    {"sample": 3},
    {"sample": 1, "angle": 37.0, "right": 0.1, "down": -0.05, "scale": 1.2},
    {"sample": 4, "angle": -90.0, "corners": "mean"},
    {"sample": 2, "angle": 150.0, "right": -0.2, "corners": "mean", "hidden": True},
]
ASK = """async (questions) => {
    const { open } = await import("/static/js/browser.js");
    const source = await open();
    const [model] = await source.models();
    const found = [];
    for (const question of questions) found.push(await source.explain(model.name, question));
    return JSON.stringify(found, (key, value) => (ArrayBuffer.isView(value) ? [...value] : value));
}"""


def question(asked, model):
    """What the page asks: a class against another, and the upper left hidden if a part is."""
    names, (_, height, width) = model.classes, model.config.image_shape
    bits = bytes([0xFF] * (height * width // 24)).ljust(height * width // 8, b"\0")
    hidden = base64.b64encode(bits).decode() if asked.get("hidden") else None
    return asked | {"class": names[5], "against": names[0], "hidden": hidden}


def by_torch(library, name, asked):
    """The server's answer to the same question, and the maps before they became bytes."""
    wanted = Question.model_validate(asked)
    served = library[name]
    picture = (served.samples.images[asked["sample"]] * 255).round() / 255
    job = Job(
        name,
        picture,
        wanted.transform(),
        ((OWN, name),),
        served.class_index(asked["class"]),
        served.class_index(asked["against"]),
        corners=wanted.corners,
        hidden=hidden_pixels(asked["hidden"], served.config.image_shape[1:]),
    )
    found = answer(library, job)
    return found, render(found)


def near(map_out, expected):
    values = torch.tensor(map_out["values"]).reshape(map_out["rows"], map_out["cols"])
    torch.testing.assert_close(values, expected, rtol=0, atol=1e-3)


def check_exemplar(detail, gallery, prototypes):
    """The page has keys of one byte a number: what it finds must be as like, and its own picture."""
    found, label = gallery.nearest(prototypes), detail["index"]
    said = detail["prototype"]
    assert said["likeness"] == pytest.approx(float(found.likeness[0, label]), abs=5e-3)
    assert int(gallery.labels[said["exemplar"]]) == label
    assert said["picture"] == png(gallery.pictures[said["exemplar"]] / 255)
    if said["exemplar"] == int(found.exemplars[0, label]):
        height, width = gallery.pictures.shape[-2:]
        cells = torch.tensor([height, width]) / torch.tensor(gallery.keys.shape[-2:])
        assert said["shift"] == pytest.approx((found.shifts[0, label] * cells).tolist(), abs=8)


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_it_answers_as_pytorch_does(opened_alone, name):
    model = load(name)
    library = Library({name: Served(name, model, samples_for(model.config))})
    questions = [question(asked, model) for asked in POSES]
    page = opened_alone(name)
    for asked, said in zip(questions, json.loads(page.evaluate(ASK, questions)), strict=True):
        found, shown = by_torch(library, name, asked)
        explanation, pair = found.explanation, found.pairs[(OWN, name)]
        for mine, theirs in (("still", shown.still), ("turned", shown.turned)):
            assert said[mine]["logits"] == pytest.approx(theirs.logits, abs=1e-3)
            assert said[mine]["probabilities"] == pytest.approx(theirs.probabilities, abs=1e-3)
        near(said["rows"][0]["renewed"], pair.renewed)
        near(said["rows"][0]["carried"], pair.carried)
        for score in ("raw", "floor", "calibrated", "centred"):
            assert said["rows"][0][score] == pytest.approx(getattr(pair.scores, score), abs=1e-3)
        heatmaps = explanation.heatmaps()[1]
        for item in said["evidence"]:
            near(item["heatmap"], heatmaps[item["index"]])
            assert item["gained"] + item["lost"] == pytest.approx(item["logit"], abs=1e-3)
        near(said["why"]["heatmap"], explanation.contrast(5, 0)[1])
        assert [detail["index"] for detail in said["detail"]] == [5, 0]
        for detail in said["detail"]:
            near(detail["contributions"], explanation.evidence[1, detail["index"]])
            if model.pixels_are_features:
                values = torch.tensor(detail["prototype"]["values"]).reshape(model.feature_shape)
                torch.testing.assert_close(
                    values, explanation.prototypes[1, detail["index"]], rtol=0, atol=1e-3
                )
            else:
                check_exemplar(detail, model.gallery, explanation.prototypes[1:, :])
        brushed = pair.scores.brushed
        assert (said["rows"][0]["brushed"] is None) == (brushed is None)
        if brushed:
            for score, value in said["rows"][0]["brushed"].items():
                assert value == pytest.approx(getattr(brushed, score), abs=1e-3)
            assert said["hidden"] == pytest.approx(found.hidden_share, abs=1e-5)


def test_the_page_is_there_without_a_server(opened_alone, picture):
    page = opened_alone("mnist", "/#sample=3&angle=30&right=0.1")
    settled(page)
    assert figure(page) > 0.95
    expect(page.locator("#seen")).to_contain_text("Seen as 3")
    expect(page.locator(".class")).to_have_count(10)
    expect(page.locator(".product")).to_have_count(2)
    expect(page.locator("#where")).to_contain_text("nothing is sent anywhere")
    for missing in ("#docs", '[data-row="second"]'):
        expect(page.locator(missing)).to_be_hidden()
    picture(page, "alone", full_page=True)


def test_it_asks_for_nothing_while_it_works(opened_alone):
    """All that is fetched is fetched at the start: what is shown to it goes nowhere."""
    page = opened_alone("mnist", "/#sample=3")
    before = settled(page)
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.url.startswith("http") else None)
    page.context.set_offline(True)
    shown = pixels(page, '[data-row="first"] canvas >> nth=0')
    drag(page, (0.5, 0.6), (0.6, 0.65))
    before = settled(page, after=before)
    assert page.locator("#right").input_value() == "0.1"
    assert pixels(page, '[data-row="first"] canvas >> nth=0') != shown
    drag(page, (0.6, 0.19), (0.24, 0.55))  # the handle
    before = settled(page, after=before)
    assert float(page.locator("#angle").input_value()) == pytest.approx(90, abs=3)
    assert figure(page) > 0.9
    page.locator('.class[data-class="8"]').click()
    before = settled(page, after=before)
    page.locator("#why-against").select_option("5")
    settled(page, after=before)
    expect(page.locator("#contrast figcaption")).to_have_text("8 − 5")
    assert asked == []


def test_files_are_prepared_as_the_server_does(opened_alone):
    rng = torch.Generator().manual_seed(0)
    smooth = torch.nn.functional.interpolate(
        torch.rand(1, 3, 6, 8, generator=rng), (300, 400), mode="bicubic"
    )
    whole = base64.b64decode(png(smooth[0].clamp(0, 1)))
    for name, invert in (("cifar10", False), ("mnist", True)):
        shape = load(name).config.image_shape
        page = opened_alone(name)
        prepared = page.evaluate(
            """async ([data, invert]) => {
                const { open } = await import("/static/js/browser.js");
                const file = new Blob([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))]);
                return (await open()).prepare(null, file, invert);
            }""",
            [base64.b64encode(whole).decode(), invert],
        )
        mine = read_picture(base64.b64decode(prepared), shape, max_pixels=10**6, invert=False)
        theirs = read_picture(whole, shape, max_pixels=10**6, invert=invert)
        assert mine.shape == theirs.shape
        assert float((mine - theirs).abs().mean()) < 0.01


def test_files_the_pen_and_the_camera_work_without_a_server(opened_alone):
    page = opened_alone("mnist")
    before = settled(page)
    page.locator("#tab-upload").click()
    page.locator("#file").set_input_files(
        {"name": "x.jpg", "mimeType": "image/jpeg", "buffer": digit_on_paper()}
    )
    before = settled(page, after=before)
    expect(page.locator("#explained")).to_have_text("1")
    page.locator("#file").set_input_files({"name": "x.png", "mimeType": "image/png", "buffer": b"no picture"})
    expect(page.locator("#problem")).to_contain_text("no picture that the browser can read")
    page.locator("#tab-camera").click()
    page.locator("#take").click()
    before = settled(page, after=before)
    expect(page.locator("#problem")).to_be_hidden()
    shown = page.locator("#stage").evaluate("c => c.toDataURL().split(',')[1]")
    with Image.open(io.BytesIO(base64.b64decode(shown))) as taken:
        assert len(taken.convert("L").getcolors()) > 10
    page.locator("#tab-draw").click()
    assert page.locator("#video").evaluate("video => video.srcObject") is None  # the camera is off again
    draw_a_one(page)
    settled(page, after=before)
    expect(page.locator("#explained")).to_have_text("1")


def test_a_sweep_and_a_link_work_without_a_server(opened_alone):
    page = opened_alone("cifar10", "/#sample=3&angle=40&corners=mean")
    settled(page)
    page.locator("#sweep").click()
    expect(page.locator("#sweep")).to_have_text("Sweep", timeout=240_000)
    assert len(page.locator("#plot polyline").nth(1).get_attribute("points").split()) == 61
    settled(page)
    other = opened_alone(
        "cifar10", "/" + page.url.partition("/#")[1].lstrip("/") + page.url.partition("#")[2]
    )
    settled(other)
    assert figure(other) == figure(page)
    expect(other.locator("#frame")).to_be_checked()


def test_a_link_from_elsewhere_does_no_harm_without_a_server(opened_alone):
    page = opened_alone(
        "mnist", "/#model=<script>&sample=999&angle=1e9&first=x&second=y@z&hidden=AAAA&over=7"
    )
    settled(page)
    assert figure(page) > 0.5
    assert updates(page) > 0
    assert "hidden" not in page.url
