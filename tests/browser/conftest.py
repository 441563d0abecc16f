"""A server with the shipped models and a headless Chromium, or a stated reason why there is none.

`TORCHSITE_PICTURES=docs/pictures pytest tests/browser` writes the pictures of the page for the documentation.
"""

import importlib.util
import os
import shutil
import threading
from pathlib import Path

import pytest
import uvicorn
from screens import DESK

from torchsite.web import create_app
from torchsite.web.library import Library
from torchsite.web.server import address, bound

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
PATIENCE = 60_000  # milliseconds: the machine may have other work


@pytest.fixture(scope="session")
def server():
    """The address of a server in a thread of its own."""
    with bound("127.0.0.1", 0) as listener:
        config = uvicorn.Config(create_app(Library.open()), log_level="warning", access_log=False)
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        yield address(listener, "127.0.0.1")
        running.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def browser():
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright is not installed: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine: apt-get install chromium")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def opened(browser, server):
    """A function that opens the page; whatever the page complains of fails the test."""
    complaints, contexts = [], []

    def open_page(address="/", *, size=DESK, **options):
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("request", lambda asked: _local(asked.url, server, complaints))
        page.goto(server + address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def picture():
    """A function that keeps a picture of the page if the documentation asks for one."""
    folder = os.environ.get("TORCHSITE_PICTURES")

    def keep(shown, name, **options):
        if folder:
            shown.screenshot(path=Path(folder) / f"page-{name}.png", **options)

    return keep


def _local(url, server, complaints):
    if not url.startswith((server, "data:", "blob:")):
        complaints.append(f"asked for {url}")
