import json
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, fields

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.section import machine_words
from torchsite.errors import DataError
from torchsite.files import write_atomically
from torchsite.results import LIMITS, Result, versions
from torchsite.version import __version__

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
mappings = st.dictionaries(st.text(), plain)


@settings(max_examples=10)  # each waits for the disk
@given(values=mappings, config=mappings, seed=st.integers(0), seconds=st.floats(0, 1e6))
def test_results_survive_their_file(tmp_path_factory, values, config, seed, seconds):
    result = Result("test", values, config, seed, seconds)
    path = result.save(tmp_path_factory.mktemp("results") / "result.json")
    assert Result.load(path) == result


def test_a_result_carries_all_it_takes_to_find_it_again(tmp_path):
    path = Result("test", {"accuracy": 0.9}, {"epochs": 3}, 7, 1.5).save(tmp_path / "a" / "result.json")
    found = json.loads(path.read_text())
    assert set(found) == {f.name for f in fields(Result)}
    assert found["versions"]["torchsite"] == __version__
    assert found["versions"]["torch"] == torch.__version__
    assert found["machine"]["cores"] >= 1
    assert found["time"].endswith("Z")


@pytest.mark.parametrize("limited", [False, True])
def test_the_machine_names_the_instructions_that_were_used(limited):
    environment = {name: value for name, value in os.environ.items() if name not in LIMITS}
    limits = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"} if limited else {}
    code = "import json; from torchsite.results import machine; print(json.dumps(machine()))"
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment | limits, capture_output=True, text=True, check=True
    )
    found = json.loads(run.stdout)
    assert {name: found[name] for name in LIMITS if name in found} == limits
    assert isinstance(found["native_bf16"], bool)
    assert isinstance(found["instructions"], str)
    if limited:
        assert found["instructions"] in ("DEFAULT", "NO AVX")
        assert not found["native_bf16"]


def test_a_page_names_the_machine_if_the_result_does():
    known = {"processor": "x86_64", "cores": 2, "instructions": "AVX2", "native_bf16": False}
    words = machine_words(Result("test", {}, {}, 0, 0.0, machine=known))
    assert words == "x86_64, 2 cores, AVX2 without native bfloat16"
    assert machine_words(Result("test", {}, {}, 0, 0.0, machine={"cores": 2})) == ""


def test_results_are_frozen():
    with pytest.raises(FrozenInstanceError):
        Result("test", {}, {}, 0, 0.0).seed = 1


def test_packages_that_are_not_installed_are_left_out(monkeypatch):
    monkeypatch.setattr("torchsite.results.PACKAGES", ("torch", "surely-not-installed"))
    assert set(versions()) == {"torchsite", "python", "torch"}


def test_a_missing_file_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"none\.json"):
        Result.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1, 2]", b"3", b'{"name": "x"}', b"\xff\xfe", b'{"nam": 1}']
)
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"bad\.json"):
        Result.load(path)


def test_what_json_cannot_say_leaves_no_file(tmp_path):
    with pytest.raises(TypeError):
        Result("test", {"tensor": torch.zeros(1)}, {}, 0, 0.0).save(tmp_path / "result.json")
    assert list(tmp_path.iterdir()) == []


def test_writing_replaces_in_one_step(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    write_atomically(path, lambda part: part.write_bytes(b"new"))
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_writer_that_fails_leaves_the_old_file(tmp_path):
    path = write_atomically(tmp_path / "file", b"old")

    def half(part):
        part.write_bytes(b"ha")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_atomically(path, half)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_result_equals_what_it_was_made_from():
    result = Result("test", {"a": 1}, {}, 0, 0.0)
    assert Result(**asdict(result)) == result
