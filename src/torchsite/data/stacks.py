"""Files that hold more than a colour picture: stacks of channels, 16 bits, medicine.

| file | what is read |
|---|---|
| TIFF of 2 to 8 grey pages of one size | each page is a channel (microscopy) |
| TIFF of 2 or 5 to 8 samples a pixel | each sample is a channel; needs `tifffile` |
| `.npy` of 2 to 8 channels, first or last | uint8, uint16, or floats in [0, 1]; never pickled objects |
| DICOM (`.dcm`, `.dicom`) | one grey picture, by its rescaling and window; needs `pydicom` |

16 bits are scaled to 8 by one rule for all files, so that brightness can be compared between them; DICOM
files name their own black and white. Other files are colour pictures (`pictures.py`).

The header of a small file can describe a huge picture, so it is checked before memory is taken: pages,
frames and channels all count towards `MAX_PIXELS`.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from torchsite.extras import needed
from torchsite.files import regular

MAX_PIXELS = 80_000_000
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
DEFLATED = "1.2.840.10008.1.2.1.99"
CHANNELS = range(2, 9)
COLOUR = 3
STACKS = (".tif", ".tiff")
DICOM = (".dcm", ".dicom")
ARRAYS = (".npy",)
GREY_MODES = ("1", "L", "I", "I;16", "I;16L", "I;16B", "I;16N")


def open_picture(path: Path) -> Image.Image:
    """A picture of which the head was read; whatever is no regular file, or of another format, is an OSError.

    Others of Pillow's formats start programs (EPS) or are no pictures.
    """
    return Image.open(regular(path), formats=FORMATS)


def check_pixels(*sides: int) -> None:
    """More pixels than `MAX_PIXELS`, all pages and channels counted, are a ValueError."""
    if math.prod(max(1, side) for side in sides) > MAX_PIXELS:
        raise ValueError(f"{'×'.join(map(str, sides))} is more than {MAX_PIXELS:,} pixels")


def n_channels(path: Path) -> int:
    """How many channels a file has for us: three, unless it is a stack; grey and colour are both three."""
    suffix = regular(path).suffix.lower()
    if suffix in ARRAYS:
        return _array(path).shape[0]
    if suffix not in STACKS:
        return COLOUR
    try:
        with open_picture(path) as file:
            pages = getattr(file, "n_frames", 1)
            if pages in CHANNELS and file.mode in GREY_MODES and _same_pages(file, pages):
                return int(pages)
            return COLOUR
    except OSError:  # Pillow knows no pictures of so many samples
        shape = _shape_of_samples(path)
        return shape[_channel_axis(shape)]


def is_special(path: Path) -> bool:
    """Whether a file is read here and not as a colour picture."""
    suffix = path.suffix.lower()
    return suffix in (*ARRAYS, *DICOM) or (suffix in STACKS and n_channels(path) != COLOUR)


def read_stack(path: Path) -> np.ndarray:
    """A special file as uint8 of channels × height × width."""
    return READERS[path.suffix.lower()](regular(path))


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
        file = open_picture(path)
    except OSError:
        return _read_samples(path)
    with file:
        n_pages = getattr(file, "n_frames", 1)
        check_pixels(n_pages, *file.size)
        pages = []
        for number in range(n_pages):
            file.seek(number)
            pages.append(to_bytes(np.array(file)))
        return np.stack(pages)


def _npy(path: Path) -> np.ndarray:
    return np.stack([to_bytes(channel) for channel in _array(path)])


def _array(path: Path) -> np.ndarray:
    """The array in a file, of which nothing was read yet but its head."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError("it is an archive of arrays: save one array with `numpy.save`")
    check_pixels(*array.shape)
    return _channels_first(array)


def _dicom(path: Path) -> np.ndarray:
    """The first frame, in grey: rescaled, and windowed or inverted if the file asks for it."""
    pydicom = needed("pydicom", who="this file", install="torchsite[dicom]")
    if getattr(pydicom.filereader.read_file_meta_info(path), "TransferSyntaxUID", "") == DEFLATED:
        raise ValueError("it is deflated, of unknown size: save it without compression")
    dataset = pydicom.dcmread(path)
    n_frames, samples = (
        int(getattr(dataset, name, 1) or 1) for name in ("NumberOfFrames", "SamplesPerPixel")
    )
    check_pixels(n_frames, int(dataset.Rows), int(dataset.Columns), samples)
    frames = np.asarray(dataset.pixel_array)
    if samples > 1:
        colour = frames[0] if frames.ndim == 4 else frames
        return to_bytes(np.moveaxis(colour, -1, 0).astype(np.uint8))
    values = (frames[0] if frames.ndim == 3 else frames).astype(np.float64)
    values *= float(getattr(dataset, "RescaleSlope", 1))
    values += float(getattr(dataset, "RescaleIntercept", 0))
    low, high = _window(dataset, values)
    values -= low
    values /= max(high - low, 1e-9)
    shown = np.clip(values, 0, 1, out=values)
    if getattr(dataset, "PhotometricInterpretation", "") == "MONOCHROME1":
        np.subtract(1, shown, out=shown)
    shown *= 255
    return np.repeat(shown.round(out=shown).astype(np.uint8)[None], COLOUR, 0)


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
    return np.moveaxis(array, _channel_axis(array.shape), 0)


def _channel_axis(shape: tuple[int, ...]) -> int:
    if len(shape) == 3 and shape[0] in CHANNELS and shape[2] not in CHANNELS:
        return 0
    if len(shape) == 3 and shape[2] in CHANNELS:
        return 2
    raise ValueError(f"expected an array of 2 to 8 channels, first or last, got {shape}")


def _same_pages(file: Image.Image, pages: int) -> bool:
    size, mode = file.size, file.mode
    for number in range(1, pages):
        file.seek(number)
        if (file.size, file.mode) != (size, mode):
            return False
    return True


def _shape_of_samples(path: Path) -> tuple[int, ...]:
    """The shape of a TIFF that Pillow cannot read, by its head."""
    with needed("tifffile", who="this file", install="torchsite[microscopy]").TiffFile(path) as file:
        shape: tuple[int, ...] = file.series[0].shape
    check_pixels(*shape)
    return shape


def _read_samples(path: Path) -> np.ndarray:
    _shape_of_samples(path)
    tifffile = needed("tifffile", who="this file", install="torchsite[microscopy]")
    return to_bytes(_channels_first(np.asarray(tifffile.imread(path))))


READERS: Mapping[str, Callable[[Path], np.ndarray]] = {
    **dict.fromkeys(STACKS, _tiff),
    **dict.fromkeys(DICOM, _dicom),
    **dict.fromkeys(ARRAYS, _npy),
}
