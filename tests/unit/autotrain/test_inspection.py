"""What harms a classifier is found in folders that have it, and not in folders that have not."""

import numpy as np
import pytest
import torch
from PIL import Image

from torchsite.autotrain.inspection import inspect_halves, read_half
from torchsite.data.duplicates import near_pairs, same_files
from torchsite.data.request import Request

HALVES = ("train", "test")


def scribble(seed, size=32, frame=None):
    """A smooth random picture, unlike any other seed's."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (6, 6, 3)).astype(np.uint8)
    picture = Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC)
    if frame is not None:
        framed = Image.new("RGB", (size, size), frame)
        framed.paste(picture.resize((size - 8, size - 8)), (4, 4))
        return framed
    return picture


def fill(folder, n, first=0, name="{}.png", **options):
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(n):
        scribble(first + i, **options).save(folder / name.format(i))


def findings(root):
    requests = [Request(str(root), split, size=32, progress=False, skip_unreadable=True) for split in HALVES]
    return inspect_halves(*(read_half(root, request) for request in requests))


def found(root, kinds=None):
    return {f.kind: str(f) for f in findings(root) if kinds is None or f.kind in kinds}


def copy(source, target):
    target.write_bytes(source.read_bytes())


@pytest.fixture
def healthy(tmp_path):
    """Two classes in two halves, nothing wrong with them."""
    for half, n in (("train", 30), ("test", 12)):
        for number, name in enumerate(("cat", "dog")):
            fill(tmp_path / half / name, n, first=10_000 * number + 1000 * (half == "test"))
    return tmp_path


def test_a_healthy_folder_gives_no_warning(healthy):
    assert found(healthy) == {}


def test_the_same_picture_in_both_halves_is_a_leak(healthy):
    for i in range(3):
        copy(healthy / "train" / "cat" / f"{i}.png", healthy / "test" / "cat" / f"again{i}.png")
    assert found(healthy) == {
        "leak": "leak: 3 test pictures (11%) are training pictures as well: remove them there "
        "(such as train/cat/0.png = test/cat/again0.png, train/cat/1.png = test/cat/again1.png, "
        "train/cat/2.png = test/cat/again2.png)"
    }


def test_a_picture_saved_anew_is_a_near_leak(healthy):
    for i in range(4):
        with Image.open(healthy / "train" / "dog" / f"{i}.png") as picture:
            picture.save(healthy / "test" / "dog" / f"anew{i}.jpg", quality=70)
    text = found(healthy, ["leak"])["leak"]
    assert "4 test pictures" in text
    assert "nearly like" in text
    assert "train/dog/0.png ≈ test/dog/anew0.jpg" in text


def test_one_picture_under_two_labels_is_a_contradiction(healthy):
    copy(healthy / "train" / "cat" / "0.png", healthy / "train" / "dog" / "cat.png")
    kinds = found(healthy)
    assert "1 pictures stand under two labels" in kinds["contradiction"]
    assert "duplicate" in kinds


def test_tiny_and_uneven_classes_are_named(tmp_path):
    fill(tmp_path / "train" / "many", 250)
    fill(tmp_path / "train" / "few", 22, first=1000)
    fill(tmp_path / "train" / "rare", 3, first=2000)
    for number, name in enumerate(("many", "few", "rare")):
        fill(tmp_path / "test" / name, 3, first=5000 + 100 * number)
    texts = [str(finding) for finding in findings(tmp_path)]
    assert any("rare (3)" in text for text in texts)
    assert any("few: less than a 10th" in text for text in texts)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": 48}, "the size of the file's picture alone names the class of 100%"),
        ({"name": "{}.bmp"}, "the format of the file alone"),
        ({"frame": (255, 255, 255)}, "a single-coloured frame alone"),
    ],
)
def test_what_tells_the_class_beside_the_picture_is_told(tmp_path, options, words):
    for half, n in (("train", 30), ("test", 12)):
        fill(tmp_path / half / "cat", n, first=1000 * (half == "test"))
        fill(tmp_path / half / "dog", n, first=10_000 + 1000 * (half == "test"), **options)
    assert words in found(tmp_path)["tell-tale"]


def test_a_series_that_is_torn_apart_is_told(tmp_path):
    root = tmp_path / "walks"
    for number, name in enumerate(("cat", "dog")):
        for walk in range(15):
            fill(root / name, 4, first=10_000 * number + 100 * walk, name=f"walk{walk}_{{}}.png")
    assert "bear the name of a series" in found(root)["series"]


def test_damaged_files_are_counted_and_left_out(healthy):
    (healthy / "train" / "cat" / "broken.png").write_bytes(b"no picture")
    assert found(healthy) == {
        "unreadable": "unreadable: 1 files are no pictures or damaged, and were left out"
    }


def test_files_of_one_size_but_other_content_are_no_copies(tmp_path):
    paths = [tmp_path / name for name in "abcd"]
    for path, content in zip(paths, (b"one", b"two", b"one", b"longer"), strict=True):
        path.write_bytes(content)
    assert same_files(paths) == [[0, 2]]


def test_flat_pictures_of_other_brightness_are_not_alike():
    flat = torch.stack([torch.full((3, 16, 16), value, dtype=torch.uint8) for value in (20, 200)])
    assert near_pairs(flat[:1], flat) == [(0, 0)]
