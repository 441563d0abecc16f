"""What the commands and the page do with a model that is neither SITE nor a black box: a clear refusal."""

from types import SimpleNamespace

import pytest

import torchsite.model
from torchsite.cli.inputs import open_model
from torchsite.errors import NotApplicableError
from torchsite.model import SITE
from torchsite.web.library import Library

REFUSED = "'stranger', expected a SITE model or a black box"


@pytest.fixture(autouse=True)
def stranger(monkeypatch):
    """Whatever is opened is a model of another kind."""
    model = SimpleNamespace(config=SimpleNamespace(kind="stranger", image_shape=(1, 8, 8)))
    monkeypatch.setattr(torchsite.model, "load", lambda name, **_: model)


def test_commands_refuse_a_model_of_another_kind():
    with pytest.raises(NotApplicableError, match=REFUSED):
        open_model("some/folder")


def test_the_page_refuses_it_too(tmp_path):
    with pytest.raises(NotApplicableError, match=REFUSED):
        Library.open([tmp_path])


def test_what_is_known_is_opened(monkeypatch):
    known = SITE("identity", "lateral", 2, image_shape=(1, 8, 8))
    monkeypatch.setattr(torchsite.model, "load", lambda name, **_: known)
    assert open_model("some/folder") is known
