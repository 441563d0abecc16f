"""Every reader of files that users bring, as a function of bytes, with seeds to start from.

A target may return, or raise an error that torchsite raises on purpose. Anything else is a finding: another
error, a crash, a hang, a gigabyte, or an attempt to start a process.
"""

import atexit
import functools
import importlib.util
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import torch
import yaml
from PIL import Image

from torchsite.configs import to_mapping
from torchsite.data import as_images, formats
from torchsite.data.label_tables import labelled_rows, read_label_table
from torchsite.data.pictures import decode
from torchsite.data.request import Request
from torchsite.errors import TorchsiteError
from torchsite.model import SITE
from torchsite.model.gallery import GALLERY_FILE, Gallery, load_gallery, save_gallery
from torchsite.results import Result
from torchsite.training import TrainingConfig
from torchsite.training.checkpoints import last_checkpoint, publish
from torchsite.training.recipes import load_recipe, shipped_recipes

RESULT = {"name": "x", "values": {}, "config": {}, "seed": 0, "seconds": 1}
FORMATS = {"PNG": "RGBA", "JPEG": "RGB", "GIF": "P", "BMP": "RGB", "TIFF": "I;16", "WEBP": "RGB", "PPM": "L"}
FORBIDDEN = (
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "subprocess.Popen",
    "pty.spawn",
    "socket.connect",
)


class BreakoutError(BaseException):
    """A file made its reader do what no reader does."""


class Guard:
    """While armed, starting a process or opening a connection is a finding."""

    armed = False

    def __call__(self, event, arguments):
        if self.armed and event in FORBIDDEN:
            raise BreakoutError(f"{event}: {arguments}")


@functools.cache
def guard():
    hook = Guard()
    sys.addaudithook(hook)
    return hook


@contextmanager
def guarded() -> Iterator[None]:
    """No process may start in here; errors on purpose are fine."""
    guard().armed = True
    try:
        with suppress(TorchsiteError):
            yield
    finally:
        guard().armed = False


@functools.cache
def scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def file(content: bytes, name: str) -> Path:
    path = scratch() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@functools.cache
def model() -> Path:
    """A small model on disk."""
    options = {"widths": (2, 2), "code": 2, "trunk": (2, 2)}
    site = SITE("identity", "lateral", 2, image_shape=(1, 8, 8), generator_options=options)
    return site.save_pretrained(scratch() / "model")


@functools.cache
def pictured() -> SITE:
    """A small model of learned features, to put a gallery beside."""
    options = {
        "extractor_options": {"widths": (2, 2, 2), "depth": 2},
        "generator_options": {"widths": (2,), "trunk": (2,)},
    }
    site = SITE("small_cnn", "spatial", 2, image_shape=(1, 8, 8), **options)
    site.save_pretrained(scratch() / "pictured")
    return site


# Readers


def picture(content: bytes) -> None:
    assert decode(file(content, "picture.png"), 16).shape == (3, 16, 16)


def stack(content: bytes) -> None:
    """Pages or samples of a TIFF."""
    as_images(file(content, "stack.tif"))


def array(content: bytes) -> None:
    as_images(file(content, "array.npy"))


def label_table(content: bytes) -> None:
    table = read_label_table(file(content, "labelled/table.csv"), scratch() / "labelled")
    labelled_rows(table, Request("labelled"))


def gallery(content: bytes) -> None:
    """The exemplars beside a model, which shows prototypes by them."""
    shape = pictured().feature_shape
    file(content, f"pictured/{GALLERY_FILE}")
    found = load_gallery(scratch() / "pictured/model.safetensors", shape, 1, 2)
    assert found is not None
    found.show(torch.ones(1, 2, *shape))


def recipe(content: bytes) -> None:
    load_recipe(file(content, "recipe.yaml"))


def config(content: bytes) -> None:
    """A description that does not fit its weights is refused before anything of its size is built."""
    weights = (model() / "model.safetensors").read_bytes()
    file(weights, "described/model.safetensors")
    file(content, "described/config.json")
    SITE.from_pretrained(scratch() / "described")


def weights(content: bytes) -> None:
    file((model() / "config.json").read_bytes(), "weighed/config.json")
    file(content, "weighed/model.safetensors")
    SITE.from_pretrained(scratch() / "weighed")


def checkpoint(content: bytes) -> None:
    """A checkpoint with a right checksum and any content: read as a resumed run reads it."""
    for path in (scratch() / "run" / "checkpoints").glob("*"):
        path.unlink()
    publish(file(content, "run/checkpoints/writing.part"))
    path = last_checkpoint(scratch() / "run")
    with suppress(Exception):  # torch has its own errors; that there is one is enough
        torch.load(path, map_location="cpu", weights_only=True)


def result(content: bytes) -> None:
    Result.load(file(content, "result.json"))


def idx_file(content: bytes) -> None:
    formats.read_idx(file(content, "images-idx3-ubyte"), 3)


def dicom(content: bytes) -> None:
    decode(file(content, "picture.dcm"), 16)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "picture": picture,
    "stack": stack,
    "array": array,
    "label_table": label_table,
    "gallery": gallery,
    "recipe": recipe,
    "config": config,
    "weights": weights,
    "checkpoint": checkpoint,
    "result": result,
    "idx": idx_file,
}
if importlib.util.find_spec("pydicom"):
    TARGETS["dicom"] = dicom
with suppress(ImportError):  # the page needs the extra `web`
    from torchsite.web.pictures import read_picture
    from torchsite.web.problems import ProblemError

    def upload(content: bytes) -> None:
        """A picture that a browser sends."""
        with suppress(ProblemError):
            read_picture(content, (1, 28, 28), max_pixels=10**6, invert=False)

    TARGETS["upload"] = upload


def try_once(name: str, content: bytes) -> None:
    """Feed one input to one reader."""
    with guarded():
        TARGETS[name](content)


# Seeds: small valid files


def pictures() -> list[bytes]:
    made = []
    for format, mode in FORMATS.items():
        buffer = io.BytesIO()
        Image.new(mode, (9, 7)).save(buffer, format)
        made.append(buffer.getvalue())
    return made


def stacks() -> list[bytes]:
    made = []
    for mode, n_pages, compression in (
        ("L", 4, None),
        ("I;16", 2, "tiff_lzw"),
        ("1", 3, None),
        ("RGB", 1, None),
    ):
        buffer, pages = io.BytesIO(), [Image.new(mode, (9, 7))] * n_pages
        pages[0].save(buffer, "TIFF", save_all=True, append_images=pages[1:], compression=compression)
        made.append(buffer.getvalue())
    if importlib.util.find_spec("tifffile"):
        import tifffile

        for options in ({"planarconfig": "contig"}, {"planarconfig": "contig", "compression": "zlib"}):
            buffer = io.BytesIO()
            tifffile.imwrite(buffer, np.zeros((6, 7, 5), np.uint16), photometric="minisblack", **options)
            made.append(buffer.getvalue())
    return made


def arrays() -> list[bytes]:
    made = []
    for value in (np.zeros((4, 9, 9), np.uint8), np.zeros((9, 9, 2), np.float32), np.zeros((9, 9, 5), ">u2")):
        buffer = io.BytesIO()
        np.save(buffer, value)
        made.append(buffer.getvalue())
    return made


def label_tables() -> list[bytes]:
    rows = [f"{number}.png,{number % 2},{number % 3 == 0:d}" for number in range(8)]
    named = [f"a/{number}.png,one;two,train" for number in range(3)]
    return [
        "\n".join(["file,one,two", *rows]).encode(),
        "\n".join(["file,labels,split", *named, "b.png,two|three,test"]).encode("utf-8-sig"),
    ]


def galleries() -> list[bytes]:
    """One of the small model; its keys have the shape of its features."""
    generator = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 255, (4, 1, 8, 8), dtype=torch.uint8, generator=generator)
    keys = torch.rand(4, *pictured().feature_shape, generator=generator).half()
    made = Gallery(pictures, torch.arange(4) % 2, keys, source="x")
    return [save_gallery(made, scratch() / "pictured/model.safetensors").read_bytes()]


def dicoms() -> list[bytes]:
    import pydicom

    made = []
    for way_round, bits in (("MONOCHROME1", 12), ("MONOCHROME2", 8), ("RGB", 8)):
        samples, kind = (3 if way_round == "RGB" else 1), (np.uint8 if bits == 8 else np.uint16)
        one = pydicom.Dataset()
        one.Rows = one.Columns = 6
        one.SamplesPerPixel, one.PhotometricInterpretation, one.NumberOfFrames = samples, way_round, 1
        one.BitsAllocated, one.BitsStored, one.HighBit = 8 * kind().itemsize, bits, bits - 1
        one.PixelRepresentation, one.RescaleSlope, one.RescaleIntercept = 0, 2, -100
        one.WindowCenter, one.WindowWidth = [50], [100]
        if samples == 3:
            one.PlanarConfiguration = 0
        one.PixelData = np.arange(36 * samples).astype(kind).tobytes()
        one.SOPClassUID, one.SOPInstanceUID = pydicom.uid.SecondaryCaptureImageStorage, "1.2.3"
        one.file_meta = pydicom.dataset.FileMetaDataset()
        one.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        one.file_meta.MediaStorageSOPClassUID, one.file_meta.MediaStorageSOPInstanceUID = (
            one.SOPClassUID,
            "1.2.3",
        )
        buffer = io.BytesIO()
        one.save_as(buffer, enforce_file_format=True)
        made.append(buffer.getvalue())
    return made


def recipes() -> list[bytes]:
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\ndata: [*b, *b]\n"
    shipped = [path.read_bytes() for path in shipped_recipes().values()]
    return [*shipped, yaml.safe_dump({"training": to_mapping(TrainingConfig())}).encode(), bomb.encode()]


def checkpoints() -> list[bytes]:
    buffer = io.BytesIO()
    torch.save({"state": {"w": torch.zeros(2)}, "global_step": 3, "loops": {}}, buffer)
    return [buffer.getvalue()]


def idx_files() -> list[bytes]:
    return [bytes([0, 0, 8, 3]) + np.array([2, 3, 3], ">i4").tobytes() + bytes(18)]


@functools.cache
def seeds(name: str) -> tuple[bytes, ...]:
    """Where the search for bad inputs starts."""
    makers: dict[str, Callable[[], list[bytes]]] = {
        "picture": pictures,
        "upload": pictures,
        "stack": stacks,
        "array": arrays,
        "label_table": label_tables,
        "gallery": galleries,
        "dicom": dicoms,
        "recipe": recipes,
        "config": lambda: [(model() / "config.json").read_bytes()],
        "weights": lambda: [(model() / "model.safetensors").read_bytes()],
        "checkpoint": checkpoints,
        "result": lambda: [json.dumps(RESULT).encode()],
        "idx": idx_files,
    }
    return tuple(makers[name]())
