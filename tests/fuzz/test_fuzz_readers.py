"""No file that a user brings can crash a reader, blow it up, or make it run anything."""

import importlib.util
import json
import pickle
import re
import resource
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from fuzz_targets import FORBIDDEN, TARGETS, BreakoutError, guarded, model, seeds, try_once
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import load_file, save_file

from torchsite.data.pictures import decode
from torchsite.errors import ConfigError, DataError, WeightsError
from torchsite.model import SITE
from torchsite.training.recipes import load_recipe

TOOL = Path(__file__).parents[2] / "tools" / "fuzz.py"


@st.composite
def damaged(draw, name):
    """A valid file with some of it changed, cut out, repeated or added; or anything."""
    content = bytearray(draw(st.sampled_from((*seeds(name), b""))))
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(content)))
        end = draw(st.integers(place, min(len(content), place + 40)))
        pieces = [b"", bytes(content[place:end]) * 3, b"\xff\xff\xff\xff"]
        piece = draw(st.sampled_from(pieces) | st.binary(max_size=8))
        content[place:end] = piece
    return bytes(content)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_damaged_files_are_refused_in_words(name):
    @settings(max_examples=150 if name not in ("config", "weights") else 60)
    @given(damaged(name))
    def feed(content):
        try_once(name, content)

    feed()


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_valid_files_are_read(name):
    TARGETS[name](seeds(name)[0])


# Code


class Evil:
    def __reduce__(self):
        return print, ("code was run",)


@pytest.mark.parametrize("name", ["checkpoint", "weights", "config", "recipe", "result"])
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_calls_is_never_called(name, protocol, capsys):
    try_once(name, pickle.dumps({"data": Evil(), "labels": []}, protocol))
    try_once(name, pickle.dumps(Evil(), protocol))
    assert capsys.readouterr().out == ""


def test_yaml_that_names_a_python_object_is_refused(tmp_path):
    for text in ("!!python/object/apply:os.system ['true']", "data: !!python/name:os.system"):
        (tmp_path / "recipe.yaml").write_text(text)
        with pytest.raises(ConfigError, match="YAML"):
            load_recipe(tmp_path / "recipe.yaml")


def test_the_guard_notices_a_process():
    assert "subprocess.Popen" in FORBIDDEN
    with pytest.raises(BreakoutError), guarded():
        subprocess.run(["true"], check=True)


# Memory and recursion


def nested_aliases(levels):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join([*lines, f"data: *a{levels - 1}"])


@pytest.mark.parametrize(
    "text",
    [
        "data: &a [*a]",
        "training: &a {family: *a}",
        "[" * 5000,
        "{a: " * 5000,
        "data: 2001-99-99",
        "training: {epochs: " + "9" * 10000 + "}",
        "data: \x00",
        "training: {epochs: .nan, learning_rate: -.inf}",
    ],
)
def test_strange_yaml_is_refused(text, tmp_path):
    (tmp_path / "recipe.yaml").write_text(text)
    with pytest.raises(ConfigError):
        load_recipe(tmp_path / "recipe.yaml")


def test_ten_billion_aliases_cost_nothing(tmp_path):
    (tmp_path / "recipe.yaml").write_text(nested_aliases(10).replace("a0:", "model:", 1))
    tracemalloc.start()
    with pytest.raises(ConfigError) as error:
        load_recipe(tmp_path / "recipe.yaml")
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    assert len(str(error.value)) < 2000


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"classes": ' * 100_000, '{"product_scale": ' + "9" * 5000 + "}"]
)
def test_deep_or_long_json_is_refused(text, tmp_path):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(WeightsError):
        SITE.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"image_shape": [1, 100_000, 100_000]},
        {"generator_options": {"widths": [50_000, 50_000], "code": 50_000}},
        {"classes": [str(i) for i in range(30_000)]},
        {"product_scale": float("nan")},
        {"std": [float("inf")]},
    ],
)
def test_a_small_file_that_describes_a_huge_model_is_refused_before_it_is_built(changes, tmp_path):
    described = json.loads((model() / "config.json").read_text()) | changes
    (tmp_path / "config.json").write_text(json.dumps(described))
    (tmp_path / "model.safetensors").write_bytes((model() / "model.safetensors").read_bytes())
    with pytest.raises((WeightsError, ConfigError)):
        SITE.from_pretrained(tmp_path)


@pytest.mark.parametrize("side", [4096, 2000])
def test_a_picture_shape_that_was_tampered_with_takes_no_memory(side, tmp_path):
    """Weights of convolutions fit any size of pictures: the limit must hold for the configuration."""
    folder = SITE("small_cnn", "spatial", 2, image_shape=(3, 32, 32)).save_pretrained(tmp_path)
    described = json.loads((folder / "config.json").read_text()) | {"image_shape": [3, side, side]}
    (folder / "config.json").write_text(json.dumps(described))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if side > 2048:
        with pytest.raises(WeightsError, match=r"image_shape: .* 2048"):
            SITE.from_pretrained(folder)
    else:
        SITE.from_pretrained(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(value, tmp_path):
    folder = SITE("small_cnn", "spatial", 2, image_shape=(3, 32, 32)).save_pretrained(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    name = next(name for name, tensor in tensors.items() if tensor.is_floating_point())
    tensors[name].view(-1)[0] = value
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(WeightsError, match=f"{re.escape(name)} .*NaN"):
        SITE.from_pretrained(folder)


def test_a_header_that_promises_much_is_refused(tmp_path):
    from torchsite.data.formats import read_idx

    (tmp_path / "huge").write_bytes(bytes([0, 0, 8, 3]) + b"\x7f\xff\xff\xff" * 3)
    with pytest.raises(DataError):
        read_idx(tmp_path / "huge", 3)


def test_a_deep_grey_costs_few_bytes_a_pixel(tmp_path):
    """A file of some bytes may claim millions of pixels."""
    n = 1_000_000
    Image.new("I;16", (2, n // 2)).save(tmp_path / "tall.tiff", compression="tiff_lzw")
    tracemalloc.start()
    decode(tmp_path / "tall.tiff", 16)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * n


# The coverage-guided fuzzer

has_atheris = importlib.util.find_spec("atheris") is not None
needs_atheris = pytest.mark.skipif(not has_atheris, reason="atheris is not installed")


def fuzz(folder, target, seconds):
    """What the tool found, and its exit code."""
    places = ["--out", str(folder / "fuzz.json"), "--corpus", str(folder / "corpus")]
    command = [sys.executable, str(TOOL), "--target", target, "--seconds", str(seconds), *places]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert (folder / "fuzz.json").exists(), ended.stdout + ended.stderr
    return json.loads((folder / "fuzz.json").read_text())["values"]["targets"][target], ended.returncode


@pytest.mark.slow
@needs_atheris
def test_the_fuzzer_finds_a_planted_crash_by_coverage(tmp_path):
    found, code = fuzz(tmp_path, "planted", 60)
    assert (found["findings"], code) == (1, 1)


@pytest.mark.slow
@needs_atheris
def test_the_fuzzer_finds_nothing_in_the_reader_of_recipes(tmp_path):
    found, code = fuzz(tmp_path, "recipe", 5)
    assert (found["findings"], code) == (0, 0), found["said"]
    assert found["inputs"] > 50
