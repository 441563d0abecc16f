"""`mnist_sample`: 5,000 training and 1,000 test digits of the real MNIST, embedded in the package.

The digits are those of Y. LeCun, C. Cortes and C. J. C. Burges, "The MNIST database of handwritten digits",
under CC BY-SA 3.0 (see `mnist_sample.txt`); `tools/make_mnist_sample.py` drew them. They come as one PNG
sheet whose column j holds digits of class j mod 10: whoever opens it sees what it is.
"""

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from torchsite.errors import DataError
from torchsite.shapes import Labels, Pixels

SHEET = Path(__file__).with_name("mnist_sample.png")
N_DIGITS = {"train": 5000, "test": 1000}
DIGITS_A_ROW = 100


def read_sample(split: str) -> tuple[Pixels, Labels]:
    """The digits of one split, the classes taking turns, so that every slice of ten is balanced."""
    try:
        with Image.open(SHEET) as picture:
            sheet = np.array(picture)
    except OSError as error:
        raise DataError(f"{SHEET} is missing or damaged ({error}): install torchsite again") from error
    digits = sheet.reshape(-1, 28, DIGITS_A_ROW, 28).swapaxes(1, 2).reshape(-1, 1, 28, 28)
    first = N_DIGITS["train"] if split == "test" else 0
    n = N_DIGITS[split]
    return torch.from_numpy(digits[first : first + n].copy()), torch.arange(n) % 10
