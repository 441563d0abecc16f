"""The documentation site: strict, complete, and with nothing in it that comes from elsewhere."""

import json
import re
import runpy
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
pytest.importorskip("mkdocstrings", reason="the extra `docs` is not installed")

ROOT = Path(__file__).parents[2]
HOOKS = runpy.run_path(str(ROOT / "tools" / "site_hooks.py"))
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Loads(HTMLParser):
    """The addresses that a page loads by itself."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if given.get(LOADED.get(tag, "")):
            self.found.append(given[LOADED[tag]])


def loads(path):
    parser = Loads()
    parser.feed(path.read_text())
    return parser.found


def is_elsewhere(address):
    return re.match(r"(https?:)?//", address) is not None


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it, except that the notebooks are not run once more."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
        config.extra["run_notebooks"] = False
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
    return folder


@pytest.mark.filterwarnings("default")  # what libraries of others deprecate is no fault of the pages
def test_it_is_built_without_a_warning_and_loads_nothing_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    wrong = {str(page.relative_to(site)): [a for a in loads(page) if is_elsewhere(a)] for page in pages}
    assert {page: found for page, found in wrong.items() if found} == {}
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert not re.findall(r"""url\(['"]?(?:https?:)?//""", styles)
    assert not re.findall(r"@import", styles)


def test_every_page_has_its_place(site):
    expected = [
        path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")
    ]
    expected += [
        Path("index.html"),
        Path("changelog.html"),
        Path("api/metrics.html"),
        Path("models/mnist.html"),
    ]
    expected += [
        Path("notebooks", path.name).with_suffix(".html") for path in (ROOT / "docs/notebooks").glob("*.py")
    ]
    front = (site / "index.html").read_text()
    for page in expected:
        assert (site / page).is_file(), page
        assert f'href="{page}"' in front, f"{page} is not in the navigation"


def test_the_api_comes_from_docstrings(site):
    from torchsite.metrics import SelfConsistency

    text = (site / "api" / "metrics.html").read_text()
    assert SelfConsistency.__doc__.split("\n")[0].split("`")[0].strip()[:40] in text
    assert 'id="torchsite.metrics.self_consistency.SelfConsistency"' in text


def test_recipes_have_all_their_fields(site):
    text = (site / "recipes.html").read_text()
    assert all(f"<code>{name}</code>" in text for name in ("generator", "epochs", "max_rotation", "targets"))


def test_one_can_search_it(site):
    index = json.loads((site / "search" / "search_index.json").read_text())
    places = {
        entry["location"].partition("#")[0] for entry in index["docs"] if "deletion" in entry["text"].lower()
    }
    assert {"metrics.html", "api/metrics.html"} <= places


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_searching_works_from_the_disk_without_a_network(site):
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("s")
        page.keyboard.type("patch deletion")
        page.wait_for_selector(".md-search-result__item", timeout=60_000)
        browser.close()
    assert [address for address in asked if not address.startswith(("file:", "data:", "blob:"))] == []


# Links


@pytest.mark.parametrize(
    ("source", "page", "text", "expected"),
    [
        ("README.md", "index.md", "[a](docs/web.md#x)", "[a](web.md#x)"),
        ("README.md", "index.md", "![a](docs/pictures/report.png)", "![a](pictures/report.png)"),
        ("README.md", "index.md", "[a](CHANGELOG.md)", "[a](changelog.md)"),
        ("README.md", "index.md", "[a](src/torchsite/weights/mnist/README.md)", "[a](models/mnist.md)"),
        ("docs/design/bam.md", "design/bam.md", "[a](../results.md)", "[a](../results.md)"),
        ("docs/design/bam.md", "design/bam.md", "[a](../../README.md)", "[a](../index.md)"),
        ("docs/examples.md", "examples.md", "[a](../examples)", "a"),
        ("docs/web.md", "web.md", "[a](nowhere.md)", "[a](nowhere.md)"),
        ("docs/web.md", "web.md", "[a](https://example.org/x)", "[a](https://example.org/x)"),
        ("docs/web.md", "web.md", "```\n[a](../examples)\n```", "```\n[a](../examples)\n```"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(source, page, text, expected):
    assert HOOKS["site_links"](text, source, page) == expected


def test_the_page_without_a_server_is_embedded_where_it_was_made(tmp_path, monkeypatch):
    assert HOOKS["static_page"].__globals__["STATIC_PAGE"] == ROOT / "build" / "page"
    monkeypatch.setitem(HOOKS["static_page"].__globals__, "STATIC_PAGE", tmp_path)
    assert HOOKS["static_page"]() == {}
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<p>here")
    (tmp_path / "assets" / "model.onnx").write_bytes(b"weights")
    files = HOOKS["static_page"]()
    assert set(files) == {"page/index.html", "page/assets/model.onnx", "try.md"}
    assert 'src="page/index.html"' in files["try.md"]
