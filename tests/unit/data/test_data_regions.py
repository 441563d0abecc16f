"""Regions that a user gives: boxes and masks become masks of the pictures as a model sees them."""

import json

import pytest
import torch
from PIL import Image

from torchsite.data import Dataset, load_dataset
from torchsite.data.regions import read_regions
from torchsite.errors import DataError

BOX = [10, 4, 30, 24]  # of a picture of 60 × 40, of which the centre, 40 × 40, is seen at half the size


@pytest.fixture
def photos(tmp_path):
    """Two classes of two pictures of 60 × 40; both classes have an a.png."""
    for name in ("owl/a", "owl/b", "cat/a", "cat/c"):
        path = tmp_path / "photos" / "test" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (60, 40), "grey").save(path)
        train = tmp_path / "photos" / "train" / f"{name}.png"
        train.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (60, 40), "grey").save(train)
    return load_dataset(tmp_path / "photos", "test", size=20)


def written(tmp_path, given):
    path = tmp_path / "boxes.json"
    path.write_text(given if isinstance(given, str) else json.dumps(given))
    return path


def test_a_box_is_cropped_and_shrunk_as_its_picture(photos, tmp_path):
    masks = read_regions(written(tmp_path, {"b.png": [BOX]}), photos)
    row = [path.name for path in photos.paths].index("b.png")
    expected = torch.zeros(20, 20, dtype=torch.bool)
    expected[2:12, 0:10] = True  # x - 10 cropped away, all halved
    assert torch.equal(masks[row], expected)
    assert not masks[[i for i in range(4) if i != row]].any()


def test_a_mask_says_the_same_as_a_box(photos, tmp_path):
    mask = Image.new("L", (60, 40))
    mask.paste(255, tuple(BOX))
    (tmp_path / "masks" / "owl").mkdir(parents=True)
    mask.save(tmp_path / "masks" / "owl" / "a.png")
    boxes = read_regions(written(tmp_path, {"owl/a.png": [BOX]}), photos)
    assert torch.equal(read_regions(tmp_path / "masks", photos), boxes)


def test_pictures_without_files_are_named_by_their_row(tmp_path):
    data = Dataset(torch.zeros(3, 1, 8, 10, dtype=torch.uint8), torch.zeros(3, dtype=torch.int64), ("one",))
    masks = read_regions(written(tmp_path, {"1": [[0, 0, 1, 2], [9, 7, 10, 8]]}), data)
    assert masks.sum((1, 2)).tolist() == [0, 3, 0]
    assert masks[1, :2, 0].all()
    assert masks[1, 7, 9]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("[", "no JSON"),
        ([], "expected"),
        ({}, "expected"),
        ({"d.png": [BOX]}, "no picture 'd.png'"),
        ({"a.png": [BOX]}, "2 pictures"),
        ({"b.png": []}, "list of boxes"),
        ({"b.png": BOX}, "expected \\[left"),
        ({"b.png": [[0, 0, 61, 9]]}, "within 60 × 40"),
        ({"b.png": [[-1, 0, 6, 9]]}, "within 60 × 40"),
        ({"b.png": [[5, 5, 5, 9]]}, "left < right"),
        ({"b.png": [[0, 0, "6", 9]]}, "expected \\[left"),
        ({"b.png": [[0, 0, 8, 40]]}, "the model sees"),
    ],
)
def test_bad_boxes_say_what_is_wrong(photos, tmp_path, given, said):
    with pytest.raises(DataError, match=said):
        read_regions(written(tmp_path, given), photos)


def test_bad_masks_say_what_is_wrong(photos, tmp_path):
    with pytest.raises(DataError, match="no regions at"):
        read_regions(tmp_path / "nothing", photos)
    folder = tmp_path / "masks"
    folder.mkdir()
    with pytest.raises(DataError, match="no masks in"):
        read_regions(folder, photos)
    for size, said in (((60, 40), "empty"), ((40, 60), "60 × 40")):
        Image.new("L", size).save(folder / "b.png")
        with pytest.raises(DataError, match=said):
            read_regions(folder, photos)
