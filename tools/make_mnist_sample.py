"""Draw `mnist_sample` from the full MNIST: 500 training and 100 test digits of every class, as one PNG sheet.

    python tools/make_mnist_sample.py DIRECTORY_WITH_MNIST

The sheet has 100 digits a row: 50 rows from the training split, then 10 from the test split. Column j shows
digits of class j mod 10, so the labels need no storage and every slice of ten digits is balanced.
"""

import sys
from pathlib import Path

import torch
from PIL import Image

from torchsite.data import Dataset, load_dataset
from torchsite.data import formats as embedded
from torchsite.randomness import make_rng

SEED = 20210


def balanced_rows(data: Dataset, n: int) -> torch.Tensor:
    """Row numbers of `n` random digits, the classes taking turns."""
    rng = make_rng(SEED, "mnist_sample", data.split)
    shuffled = torch.randperm(len(data), generator=rng)
    of_class = [shuffled[data.labels[shuffled] == label][: n // 10] for label in range(10)]
    return torch.stack(of_class, dim=1).reshape(-1)


def main(folder: Path) -> None:
    """Write the sheet beside the module that reads it."""
    digits = []
    for split, n in embedded.N_DIGITS.items():
        data = load_dataset("mnist", split, data_dir=folder, download=False)
        digits.append(data.images[balanced_rows(data, n), 0])
    sheet = torch.cat(digits).reshape(-1, embedded.DIGITS_A_ROW, 28, 28).transpose(1, 2)
    picture = Image.fromarray(sheet.reshape(-1, embedded.DIGITS_A_ROW * 28).numpy())
    picture.save(embedded.SHEET, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
