"""Models and data as the commands name them: the model says which pictures it takes."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from torchsite.errors import NotApplicableError

if TYPE_CHECKING:
    from torchsite.data import Dataset
    from torchsite.model import SITE, BlackBox


def open_model(name: str) -> "SITE | BlackBox":
    """A saved SITE model or black box; any other kind is an error."""
    from torchsite.model import load_classifier

    return load_classifier(name)


def open_site(name: str) -> "SITE":
    """A model that explains itself; a black box is an error that says what to do."""
    from torchsite.model import SITE

    loaded = open_model(name)
    if not isinstance(loaded, SITE):
        raise NotApplicableError(
            f"{name!r} is a black box, which has no explanation of its own: use `compare`"
        )
    return loaded


def open_black_box(name: str) -> "BlackBox":
    """A black box, to judge what prototypes show."""
    from torchsite.model import BlackBox

    loaded = open_model(name)
    if not isinstance(loaded, BlackBox):
        raise NotApplicableError(f"a judge must be a black box, {name!r} is a SITE model")
    return loaded


def open_data(name: str, split: str, model: "SITE | BlackBox") -> "Dataset":
    """A data set or a folder, its pictures at the size that the model takes."""
    from torchsite.data import CATALOGUE, load_dataset

    _, height, width = model.config.image_shape
    margin = 1.0 if name in CATALOGUE else model.config.margin
    return load_dataset(name, split, size=height if height == width else None, margin=margin)


def training_data(model_name: str, data: str, model: "SITE | BlackBox") -> "Dataset | None":
    """The training half of `data`, if the run that wrote the model says that it was trained on it."""
    path = Path(model_name).resolve().parent / "run.json"
    if not (Path(model_name).is_dir() and path.is_file()):
        return None
    trained_on = json.loads(path.read_text(encoding="utf-8")).get("data", {}).get("name")
    return open_data(data, "train", model) if trained_on == Path(data).resolve().name else None
