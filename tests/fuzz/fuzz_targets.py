"""Every reader of files that users bring, as a function of bytes, with seeds to start from.

A target may return, or raise an error that torchsite raises on purpose. Anything else is a finding: another
error, a crash, a hang, a gigabyte, or an attempt to start a process.
"""

import atexit
import functools
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
from torchsite.data import cifar, idx
from torchsite.data.pictures import fitted, opened
from torchsite.errors import TorchsiteError
from torchsite.model import SITE
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
    options = {"widths": (2, 2), "code": 2, "trunk": (2, 2, 2)}
    site = SITE("identity", "trunk", 2, image_shape=(1, 8, 8), generator_options=options)
    return site.save_pretrained(scratch() / "model")


# Readers


def picture(content: bytes) -> None:
    with opened(io.BytesIO(content)) as file:  # type: ignore[arg-type]  # Pillow takes either
        assert fitted(file, 16).shape == (3, 16, 16)


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
    idx.read_idx(file(content, "images-idx3-ubyte"), 3)


def cifar_pickle(content: bytes) -> None:
    cifar._read_py(file(content, "data_batch_1"))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "picture": picture,
    "recipe": recipe,
    "config": config,
    "weights": weights,
    "checkpoint": checkpoint,
    "result": result,
    "idx": idx_file,
    "cifar_pickle": cifar_pickle,
}
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


def cifar_pickles() -> list[bytes]:
    import pickle

    batch = {b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, 1]}
    return [pickle.dumps(batch, protocol) for protocol in (0, 2)]


@functools.cache
def seeds(name: str) -> tuple[bytes, ...]:
    """Where the search for bad inputs starts."""
    makers: dict[str, Callable[[], list[bytes]]] = {
        "picture": pictures,
        "upload": pictures,
        "recipe": recipes,
        "config": lambda: [(model() / "config.json").read_bytes()],
        "weights": lambda: [(model() / "model.safetensors").read_bytes()],
        "checkpoint": checkpoints,
        "result": lambda: [json.dumps(RESULT).encode()],
        "idx": idx_files,
        "cifar_pickle": cifar_pickles,
    }
    return tuple(makers[name]())
