"""The sheets of the BAM experiment for a picture that anyone may show: a cat's face on a pagoda.

The cat comes with scikit-image, the pagoda with scikit-learn. Neither model has seen the like: the object
model knows breeds of cats and dogs and fruit, the scene model no pagodas. Each explains the class it names.

Claim:    SITE's map shows the cat's face to the object model and what is around it to the scene model, and
          it moves with the picture.
Command:  torchsite reproduce bam_photograph   (on the models of `reproduce bam`; needs scikit-image)
Cost:     a minute, once the models are there.
"""

from dataclasses import replace

import numpy as np
import torch
from PIL import Image, ImageDraw

from experiments.bam.dataset import BamDataset, compose
from experiments.bam.experiment import QUICK_METHODS
from experiments.bam.models import Models, models_beside
from experiments.bam.pairs import POSES
from experiments.bam.sheet import SHEET, Sheet, draw_sheets, make_sheet
from experiments.section import Pictures
from experiments.shown import open_photograph
from experiments.study import Found, Run, Study
from torchsite.data import Dataset, to_float
from torchsite.results import Result
from torchsite.shapes import Size

# The outline of the cat's face in chelsea.png, column and row by turns.
FACE = (35, 60, 45, 0, 345, 0, 350, 60, 355, 150, 330, 220, 290, 262, 240, 285, 190, 275, 110, 235, 60, 190)
PLACE = 3  # the random stream that says how large the face is and where


def find(run: Run) -> Found:
    """Explain one picture with the models of the BAM experiment beside; train them if they are not there."""
    models = models_beside(run.folder, quick=run.quick, progress=run.progress)
    methods = [method for method in SHEET if not run.quick or method in QUICK_METHODS]
    sheet, arrays = make_sheet(models, photograph(models["site"]), methods)
    weights = {kind: one.weights for kind, one in models.items()}
    sources = ["scikit-image's chelsea.png", "scikit-learn's china.jpg"]
    return Found({"sheet": sheet}, arrays, {"weights": weights, "sources": sources})


def text(result: Result, pictures: Pictures) -> str:
    """The two sheets, and what SITE takes the picture for."""
    sheet: Sheet = result.values["sheet"]
    object_seen, scene_seen = (name.replace("_", " ") for name in (sheet["object"], sheet["scene"]))
    links = (pictures.sheet(f"{result.name}-{pose}", f"All methods on both models, {pose}") for pose in POSES)
    return (
        f"A cat's face on a pagoda (photographs that come with scikit-image and scikit-learn), as it is and "
        f"in a pose of its own for either model. SITE takes the object for {object_seen} and the scene "
        f"for {scene_seen}; it knows no pagodas. SITE's maps are its own, the others are of the black "
        f"box.\n"
        f"{''.join(links)}"
    )


def photograph(models: Models) -> BamDataset:
    """The cat's face on the pagoda, labelled with what the models see in it."""
    _, height, width = models.objects.config.image_shape
    scene = Dataset(_pagoda((height, width)), torch.zeros(1, dtype=torch.long), ("pagoda",), "china.jpg")
    made = compose(scene, [[_face()]], ("cat",), per_pair=1, seed=PLACE, progress=False)
    image = to_float(made.images)
    with torch.no_grad():
        objects, scenes = (model.eval()(image).argmax(1) for model in (models.objects, models.scenes))
    return replace(
        made,
        object_labels=objects,
        scene_labels=scenes,
        object_classes=tuple(models.objects.classes),
        scene_classes=tuple(models.scenes.classes),
    )


def _face() -> Image.Image:
    cat = open_photograph("chelsea.png")
    outline = Image.new("L", cat.size)
    ImageDraw.Draw(outline).polygon(FACE, fill=255)
    cat.putalpha(outline)
    return cat.crop(outline.getbbox())


def _pagoda(size: Size) -> torch.Tensor:
    photo = open_photograph("china.jpg", "sklearn.datasets.images", "scikit-learn")
    side = min(photo.size)
    square = photo.crop((0, 0, side, side)).resize((size[1], size[0]), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.asarray(square).transpose(2, 0, 1).copy())[None]


STUDY = Study(
    "bam_photograph",
    "### The comparison sheets",
    find=find,
    text=text,
    show=draw_sheets,
)
