import hashlib
import os
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from data_makers import cifar_bin, write_tar
from torchsite.data import load_dataset, published
from torchsite.data.download import Remote, fetch
from torchsite.errors import DataError

CONTENT = bytes(range(256)) * 4000
CHECKSUM = f"md5:{hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()}"


class Mirror(BaseHTTPRequestHandler):
    """Serves `server.files`; ends early after `server.cut` bytes."""

    def do_GET(self):
        server = self.server
        server.seen.append(self.path)
        content = server.files.get(self.path)
        if content is None:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: server.cut])

    def log_message(self, *args):
        pass


@pytest.fixture
def mirror():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    server.files, server.seen, server.cut = {"/file": CONTENT}, [], None
    server.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


def test_a_file_is_fetched_once(mirror, tmp_path):
    remote = Remote("file", CHECKSUM, (mirror.url,))
    for _ in range(2):
        assert fetch(remote, tmp_path / "new").read_bytes() == CONTENT
    assert len(mirror.seen) == 1
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


def test_an_interrupted_download_is_an_error_and_begins_again(mirror, tmp_path):
    remote = Remote("file", CHECKSUM, (mirror.url,))
    mirror.cut = 300_000
    with pytest.raises(DataError):
        fetch(remote, tmp_path)
    assert not list(tmp_path.iterdir())
    mirror.cut = None
    assert fetch(remote, tmp_path).read_bytes() == CONTENT


def test_what_killed_processes_left_long_ago_is_removed(mirror, tmp_path):
    for name, age in ((".file.old.part", 8 * 24 * 3600), (".file.new.part", 60)):
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    assert fetch(Remote("file", CHECKSUM, (mirror.url,)), tmp_path).read_bytes() == CONTENT
    assert sorted(path.name for path in tmp_path.iterdir()) == [".file.new.part", "file"]


def test_a_wrong_checksum_is_an_error_and_leaves_no_file(mirror, tmp_path):
    with pytest.raises(DataError, match="hash"):
        fetch(Remote("file", f"md5:{'0' * 32}", (mirror.url,)), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_next_mirror_steps_in(mirror, tmp_path):
    remote = Remote("file", CHECKSUM, (f"{mirror.url}gone/", "http://127.0.0.1:9/", mirror.url))
    assert fetch(remote, tmp_path).read_bytes() == CONTENT


def test_all_failures_are_told(mirror, tmp_path):
    with pytest.raises(DataError, match=r"(?s)gone/file: 404.*127\.0\.0\.1:9"):
        fetch(Remote("file", CHECKSUM, (f"{mirror.url}gone/", "http://127.0.0.1:9/")), tmp_path)


def test_many_at_once_get_one_whole_file(mirror, tmp_path):
    remote, results = Remote("file", CHECKSUM, (mirror.url,)), []
    threads = [threading.Thread(target=lambda: results.append(fetch(remote, tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.read_bytes() == CONTENT for path in results] == [True] * 4
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("file")] == ["file"]


def offer_cifar(mirror, tmp_path, monkeypatch):
    write_tar(tmp_path / "made" / "archive", cifar_bin(), "cifar-10-batches-bin")
    content = (tmp_path / "made" / "archive").read_bytes()
    mirror.files["/cifar-10-binary.tar.gz"] = content
    checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
    entry = published.CATALOGUE["cifar10"]
    remotes = (Remote("cifar-10-binary.tar.gz", checksum, (mirror.url,)),)
    near = replace(entry, remotes=remotes)
    monkeypatch.setattr(published, "CATALOGUE", {"cifar10": near})


def test_a_missing_set_is_downloaded_into_the_cache(mirror, tmp_path, monkeypatch):
    offer_cifar(mirror, tmp_path, monkeypatch)
    for split, n in (("train", 20), ("test", 4)):
        assert len(load_dataset("cifar10", split)) == n
    assert len(mirror.seen) == 1
    assert (tmp_path / "cache" / "cifar10" / "cifar-10-binary.tar.gz").is_file()


def test_a_failed_download_says_how_to_do_it_by_hand(mirror, tmp_path, monkeypatch):
    offer_cifar(mirror, tmp_path, monkeypatch)
    mirror.files.clear()
    with pytest.raises(DataError, match=r"(?s)404.*TORCHSITE_DATA"):
        load_dataset("cifar10")
