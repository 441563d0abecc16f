"""A server with the shipped models and a headless Chromium, or a stated reason why there is none.

`TORCHSITE_PICTURES=docs/pictures pytest tests/browser` writes the pictures of the page for the documentation.
"""

import importlib.util
import os
import shutil
import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
import uvicorn
from screens import DESK, LONG_NAMES

from torchsite.data import load_dataset
from torchsite.errors import ConfigError
from torchsite.evaluation.audit import audit
from torchsite.evaluation.audit_files import to_file
from torchsite.model import SITE, load
from torchsite.web import create_app
from torchsite.web.groups import groups_of
from torchsite.web.library import Library, Served
from torchsite.web.page import write_page
from torchsite.web.runtime import runtime_files
from torchsite.web.samples import samples_for
from torchsite.web.server import address, bound

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
CAMERA = [
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
]  # a film of the browser's own
PATIENCE = 60_000  # milliseconds: the machine may have other work


QUICK = (
    "test_the_page_shows_both_explanations_and_their_figures",
    "test_a_drag_shifts_the_picture_and_the_explanation_follows",
)


def pytest_collection_modifyitems(items):
    """Two tests of the page are for every run, the others for the whole one."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.originalname not in QUICK:
            item.add_marker(pytest.mark.slow)


@contextmanager
def serving(library):
    """The address of a server in a thread of its own."""
    with bound("127.0.0.1", 0) as listener:
        config = uvicorn.Config(create_app(library), log_level="warning", access_log=False)
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        yield address(listener, "127.0.0.1")
        running.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def server():
    """The shipped models."""
    with serving(Library.open()) as place:
        yield place


@pytest.fixture(scope="session")
def wordy():
    """A model of learned features whose classes have long names."""
    options = {"depth": 2, "widths": (4, 4, 4), "common": 4}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        shape = {"image_shape": (3, 32, 32), "classes": LONG_NAMES, "extractor_options": options}
        models = {
            "learned": SITE("pyramid", "lateral", len(LONG_NAMES), **shape).eval(),
            "pixels": SITE(
                "identity", "lateral", len(LONG_NAMES), **shape | {"extractor_options": {}}
            ).eval(),
        }
    served = {name: Served(name, model, samples_for(model.config)) for name, model in models.items()}
    with serving(Library(served)) as place:
        yield place


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A function that writes the page of a shipped model and serves its files: their address."""
    try:
        runtime = runtime_files()
    except ConfigError as error:
        pytest.skip(f"no ONNX Runtime for browsers: {error}")
    servers = {}

    def written(name, model=None, audits=()):
        if name not in servers:
            folder = tmp_path_factory.mktemp(name)
            write_page(model or load(name), name, folder, runtime, audits=audits)
            servers[name] = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
            threading.Thread(target=servers[name].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[name].server_address[1]}"

    yield written
    for one in servers.values():
        one.shutdown()
        one.server_close()


class Quiet(SimpleHTTPRequestHandler):
    """What `python -m http.server` answers with; a page that is closed takes the rest of no file."""

    def copyfile(self, source, outputfile):
        with suppress(ConnectionError):
            super().copyfile(source, outputfile)

    def log_message(self, *said):
        pass


@pytest.fixture(scope="session")
def browser():
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright is not installed: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine: apt-get install chromium")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *CAMERA])
        yield running
        running.close()


@pytest.fixture
def opened(browser, server):
    """A function that opens the page; whatever the page complains of fails the test."""
    with watched(browser, server) as open_page:
        yield open_page


@pytest.fixture
def opened_alone(browser, site):
    """The same for the page without a server, of the named model."""
    with ExitStack() as stack:

        def open_page(name, address="/", **options):
            return stack.enter_context(watched(browser, site(name)))(address, **options)

        yield open_page


@pytest.fixture(scope="session")
def audited(tmp_path_factory):
    """A small model of digits, and the file of its audit."""
    options = {"widths": [4, 4, 4], "code": 8, "trunk": [4, 4, 4]}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = SITE("identity", "lateral", 10, image_shape=(1, 28, 28), generator_options=options).eval()
    found = audit(model, load_dataset("mnist_sample", "test"), limit=8, n_probed=8)
    return model, to_file(found, "digits").save(tmp_path_factory.mktemp("audit") / "audit.json")


@pytest.fixture(params=["server", "browser"])
def opened_with_groups(request, browser, audited, site):
    """A function that opens the page of a model that was audited, with a server or without."""
    model, path = audited
    with ExitStack() as stack:
        if request.param == "server":
            served = Served("digits", model, samples_for(model.config), groups_of([model], [path])[0])
            place = stack.enter_context(serving(Library({"digits": served})))
        else:
            place = site("digits", model, [path])
        yield stack.enter_context(watched(browser, place))


@contextmanager
def watched(browser, server):
    """A function that opens pages of one server and keeps what they complain of."""
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
