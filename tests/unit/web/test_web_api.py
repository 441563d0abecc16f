"""The interface as programs use it."""

import base64
import io
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from fastapi.testclient import TestClient
from PIL import Image
from web_makers import file, library

from torchsite.web import Settings, create_app
from torchsite.web.pictures import from_base64, read_picture

ASK = "/api/explain?model=digits"


def ask(client, model="digits", **fields):
    response = client.post(f"/api/explain?model={model}", json={"sample": 0} | fields)
    assert response.status_code == 200, response.text
    return response.json()


def refusal(response, status, code):
    assert response.status_code == status, response.text
    said = response.json()
    assert set(said) == {"code", "reason"}
    assert said["code"] == code
    return said["reason"]


def test_models_say_what_can_be_asked(client):
    digits, box, colours = client.get("/api/models").json()
    assert (digits["kind"], box["kind"], colours["image_shape"]) == ("site", "black_box", [3, 32, 24])
    assert digits["companions"] == ["digits_black_box"]
    assert (digits["draw"], colours["draw"]) == (True, False)
    assert "self_explanation" not in [method["name"] for method in box["methods"]]
    live = {method["name"]: method["live"] for method in digits["methods"]}
    assert live["grad_cam"]
    assert not live["rise"]


@pytest.mark.parametrize("model", ["digits", "digits_black_box", "colours"])
def test_samples_have_the_shape_of_the_model(client, library, model):
    samples = client.get(f"/api/samples?model={model}").json()
    channels, height, width = library[model].config.image_shape
    assert len(samples) >= 5
    for sample in samples:
        with Image.open(io.BytesIO(base64.b64decode(sample["image"]))) as picture:
            assert picture.size == (width, height)
            assert picture.mode == ("L" if channels == 1 else "RGB")


def test_what_the_brush_hides_is_a_bit_for_each_pixel(client):
    nothing, everything = (base64.b64encode(bytes([value] * 98)).decode() for value in (0, 255))
    said = ask(client, hidden=nothing, angle=20, corners="mean")
    (row,) = said["rows"]
    assert (said["hidden"], row["brushed"]["covered"]) == (0, 0)
    assert row["brushed"]["before"] == pytest.approx(row["brushed"]["after"], abs=1e-5)
    whole = ask(client, hidden=everything, angle=20)
    assert whole["hidden"] == pytest.approx(1)
    assert ask(client)["rows"][0]["brushed"] is None
    for hidden in ("AAAA", "no bits"):
        response = client.post(ASK, json={"sample": 0, "hidden": hidden})
        assert "hidden: expected" in refusal(response, 422, "invalid")
    refusal(client.post(ASK, json={"sample": 0, "corners": "green"}), 422, "invalid")


def test_prototypes_are_pictures_only_where_features_are_pixels(client):
    (detail,) = ask(client)["detail"]
    assert Image.open(io.BytesIO(base64.b64decode(detail["prototype"]))).size == (28, 28)
    models = {model["name"]: model for model in client.get("/api/models").json()}
    assert (models["digits"]["pixels"], models["digits"]["feature_shape"]) == (True, [1, 28, 28])


def sent(content):
    return base64.b64encode(content).decode()


def test_a_file_and_its_data_uri_are_the_same_question(client):
    content = sent(file())
    said = ask(client, sample=None, image=content, angle=30, **{"class": 3})
    uri = f"data:image/png;base64,{content}"
    assert ask(client, sample=None, image=uri, angle=30, **{"class": "3"}) == said
    assert said["explained"] == 3


def test_methods_may_be_of_another_model(client):
    said = ask(client, methods=["gradient", "grad_cam@digits_black_box"])
    assert [(row["method"], row["model"]) for row in said["rows"]] == [
        ("gradient", "digits"),
        ("grad_cam", "digits_black_box"),
    ]


def test_the_prepared_picture_asks_the_same_again(client):
    first = ask(client, sample=None, image=sent(file()), angle=20, invert=True)
    again = ask(client, sample=None, image=first["image"], angle=20)
    assert again["image"] == first["image"]
    assert again["turned"]["logits"] == pytest.approx(first["turned"]["logits"], abs=0.05)


def test_the_moved_picture_is_what_the_model_sees(client, library):
    said = ask(client, sample=3, angle=90, scale=1.0)
    moved = read_picture(from_base64(said["moved"]), (1, 28, 28), max_pixels=1000, invert=False)
    expected = library["digits"].samples.images[3].rot90(1, (-2, -1))
    torch.testing.assert_close(moved, expected, atol=0.003, rtol=0)


def test_pictures_can_be_left_out_of_an_answer(client):
    with_pictures, without = ask(client), ask(client, pictures=False)
    assert without == with_pictures | {"image": None, "moved": None}


def test_classes_go_by_name_or_number(client):
    by_name, by_number = ask(client, **{"class": "7"}), ask(client, **{"class": 7})
    assert by_name == by_number
    assert "no class 'x'" in refusal(client.post(ASK, json={"sample": 0, "class": "x"}), 422, "no_such_class")
    refusal(client.post(ASK, json={"sample": 0, "class": 10}), 422, "no_such_class")
    refusal(client.post(ASK, json={"sample": 0, "against": -1}), 422, "no_such_class")


def test_why_is_the_difference_of_two_logits(client):
    said = ask(client, against=5, angle=-40)
    logits = said["turned"]["logits"]
    assert said["why"]["difference"] == pytest.approx(logits[said["explained"]] - logits[5], abs=1e-3)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "either image or sample"),
        ({"sample": 0, "image": ""}, "either image or sample"),
        ({"sample": 0, "angle": "30"}, "angle: Input should be a valid number"),
        ({"sample": 0, "angle": 361}, "less than or equal to 360"),
        ({"sample": 0, "scale": 0}, "greater than or equal to"),
        ({"sample": 0, "angel": 3}, "angel: Extra inputs"),
        ({"sample": 0, "methods": ["gradient"] * 5}, "methods: List should have at most 4"),
        ({"sample": 0.5}, "sample: Input should be a valid integer"),
        ([], "valid dictionary"),
    ],
)
def test_a_wrong_field_is_named(client, fields, said):
    assert said in refusal(client.post(ASK, json=fields), 422, "invalid")


def test_unknown_names_are_refused_and_near_ones_suggested(client):
    assert "digits" in refusal(
        client.post("/api/explain?model=digit", json={"sample": 0}), 404, "no_such_model"
    )
    refusal(client.get("/api/samples?model=no"), 404, "no_such_model")
    refusal(client.get("/api/samples"), 422, "invalid")
    assert "0 to" in refusal(client.post(ASK, json={"sample": 99}), 404, "no_such_sample")
    near = client.post(ASK, json={"sample": 0, "methods": ["grad_cm"]})
    assert "did you mean 'grad_cam'" in refusal(near, 422, "no_such_method")
    other = client.post(ASK, json={"sample": 0, "methods": ["gradient@colours"]})
    assert "same pictures and classes" in refusal(other, 422, "no_such_model")
    own = client.post(
        "/api/explain?model=digits_black_box", json={"sample": 0, "methods": ["self_explanation"]}
    )
    assert "black box" in refusal(own, 422, "not_applicable")
    refusal(client.get("/nothing"), 404, "not_found")
    refusal(client.put(ASK), 405, "method_not_allowed")


def test_bodies_that_cannot_be_read_are_refused(client):
    json = {"Content-Type": "application/json"}
    refusal(client.post(ASK, content=b"{", headers=json), 400, "malformed")
    refusal(client.post(ASK, content=b"\xff\xfe", headers=json), 400, "malformed")
    refusal(client.post(ASK, content=b"[" * 100_000, headers=json), 400, "malformed")
    refusal(client.post(ASK, content=b"x", headers={"Content-Type": "text/plain"}), 415, "content_type")
    refusal(client.post(ASK, data={"angle": "3"}), 415, "content_type")
    refusal(client.post(ASK, files={"image": file()}), 415, "content_type")


def test_files_that_are_no_pictures_are_refused(client):
    refusal(client.post(ASK, json={"image": sent(b"<html>")}), 422, "bad_picture")
    refusal(client.post(ASK, json={"image": "%%%"}), 422, "bad_picture")


@pytest.fixture
def strict():
    settings = Settings(max_body=20_000, max_pixels=1_000, queue=1, retry_after=3)
    with TestClient(create_app(library(), settings), base_url="http://127.0.0.1") as ready:
        yield ready


def test_too_much_is_refused_announced_or_not(strict):
    reason = refusal(strict.post(ASK, json={"image": sent(bytes(30_000))}), 413, "too_large")
    assert "20,000 bytes" in reason
    pieces = (bytes(5_000) for _ in range(10))  # no length is announced
    headers = {"Content-Type": "application/json"}
    refusal(strict.post(ASK, content=pieces, headers=headers), 413, "too_large")
    assert "pixels allowed" in refusal(strict.post(ASK, json={"image": sent(file())}), 413, "too_many_pixels")


def test_a_crowd_is_answered_or_refused_with_a_hint_when_to_retry(strict):
    with ThreadPoolExecutor(24) as pool:
        responses = list(pool.map(lambda _: strict.post(ASK, json={"sample": 1}), range(48)))
    refused = [response for response in responses if response.status_code != 200]
    assert len(refused) < len(responses)
    for response in refused:
        refusal(response, 503, "busy")
        assert response.headers["Retry-After"] == "3"
    assert ask(strict)["explained"] >= 0


@pytest.mark.parametrize("method", ["occlusion", "score_cam", "integrated_gradients", "smooth_grad"])
def test_slow_methods_are_answered_too(client, method):
    (row,) = ask(client, model="digits_black_box", methods=[method], angle=10)["rows"]
    assert row["method"] == method
    assert -1 <= row["raw"] <= 1


def test_health(client):
    assert client.get("/healthz").json()["status"] == "ok"


@pytest.mark.parametrize("path", ["/", "/healthz", "/static/js/main.js", "/nothing", "/openapi.json"])
def test_every_response_has_the_headers_of_security(client, path):
    headers = client.get(path).headers
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_the_page_asks_nobody_else(client):
    page = client.get("/").text
    script = client.get("/static/js/main.js").text
    assert "http://" not in page + script
    assert "https://" not in page + script


@pytest.mark.parametrize("path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py"])
def test_nothing_outside_the_static_folder_is_served(client, path):
    assert client.get(path).status_code in (400, 404)
