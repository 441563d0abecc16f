"""Where BAM's parts come from: folders of scenes, folders of cut-outs with alpha."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from pathlib import Path

from PIL import Image, ImageOps

from experiments.bam.dataset import OPAQUE, BamDataset, compose
from torchsite.data.folders import list_classes, list_split
from torchsite.data.imagecache import Listing, decode_all, load_pictures
from torchsite.data.paths import search_directories
from torchsite.data.pictures import UnreadableImageError, opened
from torchsite.data.request import Request
from torchsite.errors import ConfigError, DataError, did_you_mean

PER_PAIR = {"train": 50, "test": 10}
LAYOUT = """\
  expected bam/scenes/{train,test}/<class>/*.jpg and
  bam/objects_<kind>/{train,test}/<class>/*.png with alpha
  scenes: the ten scene classes of BAM from MiniPlaces, https://github.com/CSAILVision/miniplaces
  objects: COCO's, as in https://github.com/google-research-datasets/bam, or any cut-outs with alpha
  put them into a directory, and name it with data_dir=… or the environment variable TORCHSITE_DATA;
  compose_bam(scenes_dir, objects_dir) composes from any two folders"""


def compose_bam(
    scenes_dir: str | Path,
    objects_dir: str | Path,
    *,
    size: int | None = None,
    per_pair: int = 10,
    seed: int = 0,
    progress: bool = True,
    skip_unreadable: bool = False,
) -> BamDataset:
    """Compose every object class with every scene class, from two folders with one sub-folder per class."""
    request = Request("bam", size=size, seed=seed, progress=progress, skip_unreadable=skip_unreadable)
    scenes, objects = list_classes(Path(scenes_dir)), list_classes(Path(objects_dir))
    return replace(_compose(scenes, objects, per_pair, request), split="")


def load_bam(
    split: str = "train",
    *,
    objects: str = "fruit",
    data_dir: str | Path | None = None,
    size: int | None = None,
    per_pair: int | None = None,
    seed: int = 0,
    progress: bool = True,
    skip_unreadable: bool = False,
) -> BamDataset:
    """Compose one split from the `bam` folder of a data directory; unsplit cut-outs are split by photo."""
    place = None if data_dir is None else Path(data_dir)
    request = Request(
        "bam", split, place, size, seed=seed, progress=progress, skip_unreadable=skip_unreadable
    )
    folder = _bam_folder(request, objects)
    scenes = list_split(folder / "scenes", request)
    cutouts = list_split(folder / f"objects_{objects}", request, group=photo)
    return _compose(scenes, cutouts, PER_PAIR[request.half] if per_pair is None else per_pair, request)


def photo(file: Path) -> Hashable:
    """The photograph a cut-out was taken from: what its name begins with."""
    return file.name.partition("_")[0]


def _compose(scenes: Listing, objects: Listing, per_pair: int, request: Request) -> BamDataset:
    cutouts = _read_cutouts(objects, request)
    of_class: list[list[Image.Image]] = [[] for _ in objects.classes]
    for label, cutout in zip(objects.labels, cutouts, strict=True):
        if cutout is not None:
            of_class[label].append(cutout)
    pictures = load_pictures(scenes, request)
    bam = compose(
        pictures, of_class, objects.classes, per_pair=per_pair, seed=request.seed, progress=request.progress
    )
    return replace(bam, split=request.split, skipped=pictures.skipped + cutouts.count(None))


def _read_cutouts(objects: Listing, request: Request) -> list[Image.Image | None]:
    read: Callable[[Path], Image.Image] = partial(decode_cutout, limit=request.picture_size)
    paths, skip = objects.paths, request.skip_unreadable
    return list(decode_all(paths, read, title="reading cut-outs", skip=skip, progress=request.progress))


def decode_cutout(path: Path, limit: int) -> Image.Image:
    """An object cut out by its alpha channel, trimmed to what is opaque, no side longer than `limit`."""
    with opened(path) as file:
        if not file.has_transparency_data:
            raise ValueError("a cut-out needs an alpha channel, this picture has none")
        picture = ImageOps.exif_transpose(file).convert("RGBA")
    box = picture.getchannel("A").point([0] * OPAQUE + [255] * (256 - OPAQUE)).getbbox()
    if box is None:
        raise UnreadableImageError(f"{path} is transparent everywhere: replace it or remove it")
    picture = picture.crop(box)
    picture.thumbnail((limit, limit))
    return picture


def _bam_folder(request: Request, objects: str) -> Path:
    places = search_directories(request.data_dir)
    folders = [
        folder for place in places for folder in (place / "bam", place) if (folder / "scenes").is_dir()
    ]
    kinds = {path.name.removeprefix("objects_") for folder in folders for path in folder.glob("objects_*")}
    if not kinds:
        looked = ", ".join(str(place) for place in places)
        raise DataError(f"bam (composed of scenes and objects) is not here: looked in {looked}\n{LAYOUT}")
    if objects not in kinds:
        raise ConfigError(f"no cut-outs called {objects!r}: {did_you_mean(objects, kinds)}")
    return next(folder for folder in folders if (folder / f"objects_{objects}").is_dir())
