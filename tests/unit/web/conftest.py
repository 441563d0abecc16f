"""One application for all tests of the server that only ask."""

import pytest
from fastapi.testclient import TestClient
from web_makers import library as make_library

from torchsite.web import create_app


@pytest.fixture(scope="session")
def library():
    return make_library()


@pytest.fixture(scope="session")
def app():
    """It has models of its own: a request that is still answered must not share them with another test."""
    return create_app(make_library())


@pytest.fixture(scope="session")
def client(app):
    with TestClient(app, base_url="http://127.0.0.1") as ready:
        yield ready
