"""`torchsite gallery`: training pictures beside a model that is there already."""

import json

import numpy as np
import pytest
from PIL import Image
from running import run

from torchsite.errors import NotApplicableError
from torchsite.model import SITE
from torchsite.model.gallery import GALLERY_FILE

OPTIONS = {"depth": 3, "widths": (4, 4, 4), "common": 4}


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    for half, n in (("train", 6), ("test", 2)):
        for name in ("dark", "light"):
            (tmp_path / "photos" / half / name).mkdir(parents=True)
            for i in range(n):
                pixels = rng.integers(0, 100, (24, 24, 3)) + (150 if name == "light" else 0)
                Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "photos" / half / name / f"{i}.png")
    return tmp_path / "photos"


def test_a_model_gets_a_gallery_and_stays_what_it_was(tmp_path, photos):
    folder = tmp_path / "model"
    model = SITE(
        "pyramid", "lateral", classes=("dark", "light"), image_shape=(3, 24, 24), extractor_options=OPTIONS
    )
    model.save_pretrained(folder)
    weights = (folder / "model.safetensors").read_bytes()
    said = json.loads(run("gallery", folder, photos, "--json"))
    n, drawn = said["exemplars"], said["drawn"]
    assert drawn == "photographs"
    assert said["bytes"] == (folder / GALLERY_FILE).stat().st_size
    assert (folder / "model.safetensors").read_bytes() == weights
    gallery = SITE.from_pretrained(folder).gallery
    light = gallery.pictures.float().mean((1, 2, 3)) > 127
    assert len(gallery) == n > 0
    assert light.tolist() == [False] * (n // 2) + [True] * (n // 2)


def test_pixels_need_no_gallery(tmp_path, photos):
    model = SITE("identity", "lateral", classes=("dark", "light"), image_shape=(3, 24, 24))
    model.save_pretrained(tmp_path / "model")
    with pytest.raises(NotApplicableError):
        run("gallery", tmp_path / "model", photos)
