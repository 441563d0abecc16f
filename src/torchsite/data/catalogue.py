"""The catalogue: every data set known by name, as one table of plain values.

The checksums of `Remote`s are those of the files as the publisher offers them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchsite.data.dataset import Dataset
from torchsite.data.download import Remote
from torchsite.data.formats import (
    bin_files,
    find_idx,
    food_files,
    idx_files,
    read_bin_folder,
    read_food101,
    read_idx_folder,
)
from torchsite.data.request import Request
from torchsite.shapes import Labels, Pixels


@dataclass(frozen=True)
class Entry:
    """A published data set: its classes, how it lies on disk, its original archives, where to fetch it.

    `folders` are the usual ones below a data directory, `files` names those of a split, `read` reads them.
    `pictures` are folders with class folders below `train/` and `test/`. `label_checksums` (SHA-256 of the
    unpacked label files) tell sets apart whose files have the same names.
    """

    title: str
    classes: tuple[str, ...]
    home: str
    folders: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    files: Callable[[str], tuple[str, ...]] = lambda half: ()
    read: Callable[[Path, Request], tuple[Pixels, Labels] | Dataset] | None = None
    label_checksums: Mapping[str, str] = field(default_factory=dict)
    archives: tuple[str, ...] = ()
    remotes: tuple[Remote, ...] = ()

    def found(self, folder: Path, half: str) -> tuple[Path, ...] | None:
        """The files of a split in `folder`, if there are any and all are there."""
        paths = [find_idx(folder, name) for name in self.files(half)]
        present = tuple(path for path in paths if path is not None)
        return present if 0 < len(present) == len(paths) else None


DIGITS = tuple("0123456789")
CLOTHES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
LAND = (
    *("AnnualCrop", "Forest", "HerbaceousVegetation", "Highway", "Industrial"),
    *("Pasture", "PermanentCrop", "Residential", "River", "SeaLake"),
)
THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

MNIST_MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
FASHION_MIRRORS = (
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
)
TORONTO = ("https://www.cs.toronto.edu/~kriz/",)
ZURICH = ("https://data.vision.ee.ethz.ch/cvl/",)

IDX_FILES = (*idx_files("train"), *idx_files("test"))


def _gzipped(mirrors: tuple[str, ...], *checksums: str) -> tuple[Remote, ...]:
    """The four files of MNIST or a relative of it, by their MD5."""
    pairs = zip(IDX_FILES, checksums, strict=True)
    return tuple(Remote(f"{name}.gz", f"md5:{checksum}", mirrors) for name, checksum in pairs)


CATALOGUE: Mapping[str, Entry] = {
    "mnist_sample": Entry("6,000 digits of MNIST, embedded in torchsite", DIGITS, "embedded in torchsite"),
    "mnist": Entry(
        title="MNIST, 28×28 handwritten digits",
        classes=DIGITS,
        home="http://yann.lecun.com/exdb/mnist/",
        folders=("mnist", "MNIST/raw", "MNIST", "mnist/raw", "."),
        files=idx_files,
        read=read_idx_folder,
        label_checksums={
            "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        },
        remotes=_gzipped(
            MNIST_MIRRORS,
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
    ),
    "fashion_mnist": Entry(
        title="Fashion-MNIST, 28×28 clothes",
        classes=CLOTHES,
        home="https://github.com/zalandoresearch/fashion-mnist",
        folders=("fashion_mnist", "fashion-mnist", "FashionMNIST/raw", "FashionMNIST", "."),
        files=idx_files,
        read=read_idx_folder,
        label_checksums={
            "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        },
        remotes=_gzipped(
            FASHION_MIRRORS,
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
    ),
    "cifar10": Entry(
        title="CIFAR-10, 32×32 photographs of things",
        classes=THINGS,
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
        folders=("cifar-10-batches-bin", "cifar10/cifar-10-batches-bin", "."),
        files=bin_files,
        read=read_bin_folder,
        archives=("cifar-10-binary.tar.gz",),
        remotes=(Remote("cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530", TORONTO),),
    ),
    "food101": Entry(
        title="Food-101, photographs of 101 dishes",
        classes=(),
        home="https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101/",
        folders=("food-101", "food101", "food101/food-101", "."),
        pictures=("food101-64px", "food101"),
        files=food_files,
        read=read_food101,
        archives=("food-101.tar.gz",),
        remotes=(Remote("food-101.tar.gz", "md5:85eeb15f3717b99a5da872d97d918f87", ZURICH),),
    ),
    "eurosat": Entry(
        title="EuroSAT, 64×64 satellite pictures of ten kinds of land",
        classes=LAND,
        home="https://github.com/phelber/EuroSAT",
        pictures=("eurosat-64px", "eurosat"),
    ),
}
