"""Groups of an audit on the page: their pictures, and where they stand, as questions take them."""

import pytest
import torch
from fastapi.testclient import TestClient
from web_makers import black_box, digits

import torchsite as ts
from torchsite.data import load_dataset
from torchsite.errors import ConfigError
from torchsite.evaluation.audit_files import to_file
from torchsite.web import create_app
from torchsite.web.groups import groups_of
from torchsite.web.library import Library, Served
from torchsite.web.page import description
from torchsite.web.pictures import from_base64, hidden_pixels, read_picture
from torchsite.web.samples import samples_for


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """An audit of the model of digits, and its file."""
    found = ts.audit(digits(), load_dataset("mnist_sample", "test"), limit=8, n_probed=8)
    return found, to_file(found, "digits").save(tmp_path_factory.mktemp("audit") / "audit.json")


@pytest.fixture(scope="module")
def served(audited):
    model = digits()
    return Served("digits", model, samples_for(model.config), groups_of([model], [audited[1]])[0])


def test_pictures_and_places_are_those_of_the_audit(audited, served):
    audit, _ = audited
    assert 0 < len(served.groups) <= 12
    parts = {}
    for group in audit.groups:
        part = audit.parts[group["number"]].first(6)
        parts.setdefault(group["class"], []).append((audit.pictures.images[part.rows], part.masks))
    for group in served.groups:
        images = [
            read_picture(from_base64(one.image), (1, 28, 28), max_pixels=10**6, invert=False)
            for one in group.pictures
        ]
        masks = [hidden_pixels(one.hidden, (28, 28)) for one in group.pictures]
        shown = (255 * torch.stack(images)).round().to(torch.uint8)
        assert any(
            torch.equal(shown, pixels) and torch.equal(torch.stack(masks), places)
            for pixels, places in parts[group.of]
        )


def test_the_page_is_told_of_groups_and_asks_for_their_evidence(served):
    with TestClient(create_app(Library({"digits": served})), base_url="http://127.0.0.1") as client:
        (said,) = client.get("/api/models").json()
        (picture, *_) = said["groups"][0]["pictures"]
        of = said["groups"][0]["class"]
        question = picture | {"class": of, "angle": 0}
        answer = client.post("/api/explain?model=digits", json=question).json()
    assert said["classes"][answer["explained"]] == of
    assert answer["hidden"] > 0
    assert answer["rows"][0]["brushed"] is not None
    assert description(served)["model"]["groups"] == said["groups"]


def test_an_audit_of_other_weights_is_an_error(audited):
    with pytest.raises(ConfigError):
        groups_of([black_box()], [audited[1]])
    assert groups_of([black_box()], []) == [[]]
