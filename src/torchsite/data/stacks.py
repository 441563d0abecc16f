"""Files that hold more than a colour picture: stacks of channels, 16 bits, medicine.

| file | what is read |
|---|---|
| TIFF of 2 to 8 grey pages of one size | each page is a channel (microscopy) |
| TIFF of 2 or 5 to 8 samples a pixel | each sample is a channel; needs `tifffile` |
| `.npy` of 2 to 8 channels, first or last | uint8, uint16, or floats in [0, 1]; never pickled objects |
| DICOM (`.dcm`, `.dicom`) | one grey picture, by its rescaling and window; needs `pydicom` |

16 bits are scaled to 8 by one rule for all files, so that brightness can be compared between them; DICOM says
itself which values are black and white. Other files are colour pictures (`pictures.py`).
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from torchsite.extras import needed

CHANNELS = range(2, 9)
COLOUR = 3
STACKS = (".tif", ".tiff")
DICOM = (".dcm", ".dicom")
ARRAYS = (".npy",)
GREY_MODES = ("1", "L", "I", "I;16", "I;16L", "I;16B", "I;16N")


def n_channels(path: Path) -> int:
    """How many channels a file has for us: three, unless it is a stack; grey and colour are both three."""
    suffix = path.suffix.lower()
    if suffix in ARRAYS:
        return _channels_first(np.load(path, mmap_mode="r", allow_pickle=False)).shape[0]
    if suffix not in STACKS:
        return COLOUR
    try:
        with Image.open(path) as file:
            pages = getattr(file, "n_frames", 1)
            if pages in CHANNELS and file.mode in GREY_MODES and _same_pages(file, pages):
                return int(pages)
            return COLOUR
    except OSError:  # Pillow knows no pictures of so many samples
        return int(_samples(path).shape[0])


def is_special(path: Path) -> bool:
    """Whether a file is read here and not as a colour picture."""
    suffix = path.suffix.lower()
    return suffix in (*ARRAYS, *DICOM) or (suffix in STACKS and n_channels(path) != COLOUR)


def read_stack(path: Path) -> np.ndarray:
    """A special file as uint8 of channels × height × width."""
    return READERS[path.suffix.lower()](path)


def fit_square(pixels: np.ndarray, size: int) -> np.ndarray:
    """The shorter side takes the size, the centre is cropped: as for colour pictures."""
    height, width = pixels.shape[1:]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = torch.from_numpy(pixels[:, top : top + side, left : left + side].copy()).float()
    resized = F.interpolate(square[None], size=(size, size), mode="bicubic", antialias=size < side)
    return np.asarray(resized[0].round().clamp(0, 255).to(torch.uint8))


def _tiff(path: Path) -> np.ndarray:
    try:
        with Image.open(path) as file:
            pages = []
            for number in range(getattr(file, "n_frames", 1)):
                file.seek(number)
                pages.append(to_bytes(np.array(file)))
            return np.stack(pages)
    except OSError:
        return to_bytes(_samples(path))


def _npy(path: Path) -> np.ndarray:
    return to_bytes(_channels_first(np.load(path, allow_pickle=False)))


def _dicom(path: Path) -> np.ndarray:
    """The first frame, in grey: rescaled, windowed if the file says how, and the right way round."""
    dataset = needed("pydicom", who="this file", install="torchsite[dicom]").dcmread(path)
    pixels = np.asarray(dataset.pixel_array).astype(np.float64)
    pixels = pixels[0] if pixels.ndim == 3 and getattr(dataset, "SamplesPerPixel", 1) == 1 else pixels
    if pixels.ndim == 3:
        return to_bytes(np.moveaxis(pixels, -1, 0).astype(np.uint8))
    values = pixels * float(getattr(dataset, "RescaleSlope", 1)) + float(
        getattr(dataset, "RescaleIntercept", 0)
    )
    low, high = _window(dataset, values)
    shown = np.clip((values - low) / max(high - low, 1e-9), 0, 1)
    if getattr(dataset, "PhotometricInterpretation", "") == "MONOCHROME1":
        shown = 1 - shown
    return np.repeat((shown * 255).round().astype(np.uint8)[None], COLOUR, 0)


def _window(dataset: Any, values: np.ndarray) -> tuple[float, float]:
    """Black and white: the file's window, else what its bits can hold."""
    centre, width = (getattr(dataset, name, None) for name in ("WindowCenter", "WindowWidth"))
    if centre is not None and width is not None:
        middle, reach = (float(np.atleast_1d(np.asarray(value, dtype=float))[0]) for value in (centre, width))
        return middle - reach / 2, middle + reach / 2
    bits, signed = int(getattr(dataset, "BitsStored", 16)), int(getattr(dataset, "PixelRepresentation", 0))
    if signed or float(getattr(dataset, "RescaleIntercept", 0)):
        return float(values.min()), float(values.max())
    return 0.0, float(2**bits - 1)


def to_bytes(values: np.ndarray) -> np.ndarray:
    """uint8 as it is, 16 bits scaled, floats in [0, 1]; anything else is an error."""
    if values.dtype == np.uint8:
        return values
    if values.dtype == bool:
        return values.astype(np.uint8) * 255
    if (
        np.issubdtype(values.dtype, np.integer)
        and values.size
        and values.min() >= 0
        and values.max() <= 65535
    ):
        return ((values.astype(np.uint32) + 128) // 257).astype(np.uint8)
    if np.issubdtype(values.dtype, np.floating) and values.size and values.min() >= 0 and values.max() <= 1:
        return (values * 255).round().astype(np.uint8)
    raise ValueError(f"expected 8 or 16 bits or floats in [0, 1], got {values.dtype}: convert it first")


def _channels_first(array: np.ndarray) -> np.ndarray:
    if array.ndim == 3 and array.shape[0] in CHANNELS and array.shape[2] not in CHANNELS:
        return array
    if array.ndim == 3 and array.shape[2] in CHANNELS:
        return np.moveaxis(array, -1, 0)
    raise ValueError(f"expected an array of 2 to 8 channels, first or last, got {array.shape}")


def _same_pages(file: Image.Image, pages: int) -> bool:
    size, mode = file.size, file.mode
    for number in range(1, pages):
        file.seek(number)
        if (file.size, file.mode) != (size, mode):
            return False
    return True


def _samples(path: Path) -> np.ndarray:
    tifffile = needed("tifffile", who="this file", install="torchsite[microscopy]")
    return _channels_first(np.asarray(tifffile.imread(path)))


READERS: Mapping[str, Callable[[Path], np.ndarray]] = {
    **dict.fromkeys(STACKS, _tiff),
    **dict.fromkeys(DICOM, _dicom),
    **dict.fromkeys(ARRAYS, _npy),
}
