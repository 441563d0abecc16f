"""Tiny data sets in the layouts of the real ones."""

import gzip
import io
import struct
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image


def idx_bytes(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def digits(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, 28, 28), np.uint8), (np.arange(n) % 10).astype(np.uint8)


def write_idx(folder: Path, n=20, *, prefix="train", gzipped=False, dots=False):
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = digits(n)
    for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
        name = f"{prefix}-{kind}-ubyte"
        name = name.replace("-idx", ".idx") if dots else name
        content = idx_bytes(array)
        (folder / f"{name}{'.gz' * gzipped}").write_bytes(gzip.compress(content) if gzipped else content)
    return images, labels


def cifar_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, 3072), np.uint8), rng.integers(0, 10, n).astype(np.uint8)


BATCHES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]


def cifar_bin(n=4):
    """Name → content of the six binary batches."""
    parts = {name: cifar_rows(n, seed) for seed, name in enumerate(BATCHES)}
    return {
        f"{name}.bin": np.column_stack([labels, pixels]).tobytes() for name, (pixels, labels) in parts.items()
    }


def write_all(folder: Path, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def write_tar(path: Path, files, folder=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}" if folder else name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def picture(colour=(200, 30, 30), size=(24, 16)):
    return Image.new("RGB", size, colour)


def write_folder(root: Path, classes=("cat", "dog"), n=5, size=(24, 16)):
    for label, name in enumerate(classes):
        (root / name).mkdir(parents=True, exist_ok=True)
        for i in range(n):
            picture((40 * label, 20 * i, 99), size).save(root / name / f"{i}.png")
    return root


def write_cutouts(root: Path, classes=("apple", "pear"), n=3, side=20):
    for label, name in enumerate(classes):
        (root / name).mkdir(parents=True, exist_ok=True)
        for i in range(n):
            cutout = Image.new("RGBA", (side, side), (0, 0, 0, 0))
            cutout.paste((255, 60 * label, 10 * i, 255), (4, 6, side - 4, side - 2))
            cutout.save(root / name / f"{i}_{label}.png")
    return root
