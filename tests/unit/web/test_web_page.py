"""A page without a server: whole, from its own folder only, with a runtime that is the pinned one."""

import base64
import hashlib
import io
import json
import re
import tarfile

import numpy as np
import pytest
import torch
from typer.testing import CliRunner
from web_makers import black_box, digits, noise_gallery, seeded

from torchsite.cli import app
from torchsite.errors import ConfigError, NotApplicableError
from torchsite.model import SITE
from torchsite.model.explanation import enlarge
from torchsite.model.export import OnnxModel
from torchsite.web import page as pages
from torchsite.web import runtime
from torchsite.web.page import spreading, write_page
from torchsite.web.pictures import png

CONTENT = {name: name.encode() * 100 for name in runtime.FILES}


@pytest.fixture
def pinned(monkeypatch):
    """A runtime of a few bytes that is taken for the pinned one."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
    monkeypatch.setattr(runtime, "FILES", sums)


def package(folder, content=CONTENT):
    path = folder / "package.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in content.items():
            member = tarfile.TarInfo(f"package/dist/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def learned():
    options = {"depth": 2, "widths": (4, 4, 4), "common": 4}
    return seeded(lambda: SITE("pyramid", "lateral", 3, image_shape=(3, 20, 26), extractor_options=options))


@pytest.mark.parametrize(("cells", "pixels"), [(7, 28), (16, 16), (5, 12), (9, 4)])
def test_spreading_is_how_evidence_becomes_pixels(cells, pixels):
    evidence = torch.randn(1, 1, cells, 6)
    spread = spreading(cells, pixels).T @ evidence[0, 0] @ spreading(6, 18)
    torch.testing.assert_close(spread, enlarge(evidence, (pixels, 18))[0, 0], rtol=1e-4, atol=1e-5)
    assert float(spread.sum()) == pytest.approx(float(evidence.sum()), abs=1e-3)


def with_gallery():
    model = learned()
    model.gallery = noise_gallery(model)
    return model


SLOW = [pytest.param(make, marks=pytest.mark.slow) for make in (learned, with_gallery)]


@pytest.mark.parametrize("make", [digits, *SLOW])
def test_the_folder_has_all_that_the_page_needs(tmp_path, make):
    model = make()
    written = write_page(model, "mine", tmp_path / "site", CONTENT)
    files = {path.relative_to(tmp_path / "site").as_posix(): path for path in (tmp_path / "site").rglob("*")}
    assert written.bytes == sum(path.stat().st_size for path in files.values() if path.is_file())
    assert {"index.html", "page/model.onnx", "page/page.json", "page/ort.js", "static/js/main.js"} <= set(
        files
    )
    assert not {"static/js/server.js", "static/index.html"} & set(files)
    assert "MIT License" in files["page/ort.LICENSE.txt"].read_text()
    about = json.loads(files["page/page.json"].read_text())
    assert about["model"]["pixels"] == model.pixels_are_features
    assert [method["name"] for method in about["model"]["methods"]] == ["self_explanation"]
    images = torch.rand(2, *model.config.image_shape)
    found, explained = OnnxModel(files["page/model.onnx"])(images), model.explain(images)
    torch.testing.assert_close(found["evidence"], explained.evidence, rtol=1e-4, atol=1e-5)
    assert ("features" in found) == model.pixels_are_features
    assert ("prototypes" in found) == (model.pixels_are_features or model.gallery is not None)
    assert (about["gallery"] is None) == (about["model"]["gallery"] is None) == (model.gallery is None)
    partner = np.frombuffer(base64.b64decode(about["partners"][0]), "<f4")
    assert len(partner) == np.prod(about["cells"])
    assert len(about["partners"]) == min(8, len(about["samples"]))


def test_the_page_has_the_gallery_of_the_model():
    gallery = with_gallery().gallery
    sent = pages.exemplars(gallery)
    steps = torch.frombuffer(bytearray(base64.b64decode(sent["keys"])), dtype=torch.int8)
    keys = steps.reshape(gallery.keys.shape) * torch.tensor(sent["limits"])[:, None, None, None]
    torch.testing.assert_close(keys, gallery.keys.float(), rtol=0, atol=2e-3)
    assert sent["labels"] == gallery.labels.tolist()
    assert sent["pictures"] == [png(picture / 255) for picture in gallery.pictures]
    assert (sent["cells"], sent["reach"]) == ([8, 8], [2, 2])


@pytest.mark.slow
def test_the_page_loads_from_its_own_folder_only(tmp_path):
    write_page(digits(), "mine", tmp_path, CONTENT)
    html = (tmp_path / "index.html").read_text()
    assert "default-src 'none'" in html
    assert html.index("Content-Security-Policy") < html.index("<script")
    assert 'data-answers="browser"' in html
    for path in re.findall(r'(?:src|href)="(?!data:)([^"#]*)"', html):
        assert "//" not in path, path
        assert not path.startswith("/"), path
        assert path == "openapi.json" or (tmp_path / path).is_file(), path
    for script in (tmp_path / "static").rglob("*.js"):
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", script.read_text()), script.name
        for path in re.findall(r'from "(\./[^"]*)"', script.read_text()):
            assert (script.parent / path).is_file(), path


@pytest.mark.usefixtures("pinned")
def test_the_runtime_comes_from_a_package_or_the_cache(tmp_path):
    given = package(tmp_path)
    assert runtime.runtime_files(given) == CONTENT
    given.rename(tmp_path / f"onnxruntime-web-{runtime.VERSION}.tgz")
    assert runtime.runtime_files(cache=tmp_path) == CONTENT


@pytest.mark.usefixtures("pinned")
def test_npm_is_asked_once(tmp_path, monkeypatch):
    asked = []

    def npm(command, **options):
        asked.append(command)
        folder = type(tmp_path)(command[-1])
        package(folder).rename(folder / f"onnxruntime-web-{runtime.VERSION}.tgz")
        return type("Done", (), {"returncode": 0, "stdout": "", "stderr": ""})

    monkeypatch.setattr(runtime.shutil, "which", lambda name: "/bin/npm")
    monkeypatch.setattr(runtime.subprocess, "run", npm)
    for _ in range(2):
        assert runtime.runtime_files(cache=tmp_path / "cache") == CONTENT
    assert [command[1:3] for command in asked] == [["pack", f"onnxruntime-web@{runtime.VERSION}"]]


@pytest.mark.usefixtures("pinned")
def test_a_runtime_that_is_not_the_pinned_one_is_refused(tmp_path, monkeypatch):
    changed = CONTENT | {runtime.MACHINE: CONTENT[runtime.MACHINE] + b"!"}
    with pytest.raises(ConfigError, match=r"onnxruntime-web .*--runtime"):
        runtime.runtime_files(package(tmp_path, changed))
    with pytest.raises(ConfigError, match="--runtime"):
        runtime.runtime_files(package(tmp_path, {}))
    with pytest.raises(ConfigError, match="--runtime"):
        runtime.runtime_files(tmp_path)
    with pytest.raises(ConfigError, match="--runtime"):
        runtime.runtime_files(tmp_path / "nowhere")
    (tmp_path / "broken.tgz").write_bytes(b"no archive")
    with pytest.raises(ConfigError, match="--runtime"):
        runtime.runtime_files(tmp_path / "broken.tgz")
    monkeypatch.setattr(runtime.shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match=r"npm.*--runtime"):
        runtime.runtime_files(cache=tmp_path / "empty")


@pytest.mark.usefixtures("pinned")
def test_without_a_network_npm_says_why(tmp_path, monkeypatch):
    offline = type("Done", (), {"returncode": 1, "stdout": "", "stderr": "npm error network is unreachable"})
    monkeypatch.setattr(runtime.shutil, "which", lambda name: "/bin/npm")
    monkeypatch.setattr(runtime.subprocess, "run", lambda *words, **options: offline)
    with pytest.raises(ConfigError, match=r"network is unreachable.*--runtime"):
        runtime.runtime_files(cache=tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("pinned")
def test_the_command_writes_a_page_and_refuses_a_black_box(tmp_path):
    digits().save_pretrained(tmp_path / "run" / "model")
    black_box().save_pretrained(tmp_path / "box")
    words = ["--runtime", str(package(tmp_path)), "--out", str(tmp_path / "site")]
    done = CliRunner().invoke(app, ["page", str(tmp_path / "run" / "model"), *words, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["bytes"] > 10_000
    assert json.loads((tmp_path / "site/page/page.json").read_text())["model"]["name"] == "run"
    refused = CliRunner().invoke(app, ["page", str(tmp_path / "box"), *words])
    assert isinstance(refused.exception, NotApplicableError)


def test_the_policy_names_no_other_place():
    assert "http" not in pages.POLICY
