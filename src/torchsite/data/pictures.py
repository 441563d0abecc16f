"""One picture file, whatever its kind, as upright RGB pixels of the working size, or as a model takes it.

Stacks of channels, DICOM and arrays are read by `stacks.py`.

EXIF rotation is applied, CMYK and palettes become RGB, 16-bit greys are scaled to 8 bits, and what is
transparent shows white. The aspect is kept: the shorter side takes the working size, the centre is cropped.
Models of grey pictures see the luma of ITU-R BT.601, 0.299 R + 0.587 G + 0.114 B.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image, ImageOps
from torch import Tensor

from torchsite.data.margins import larger_size
from torchsite.data.stacks import (
    ARRAYS,
    COLOUR,
    DICOM,
    STACKS,
    check_pixels,
    fit_square,
    is_special,
    open_picture,
    read_stack,
)
from torchsite.errors import DataError, MissingExtraError, NotApplicableError

STACKED = (*STACKS, *DICOM, *ARRAYS)
BACKGROUND = (255, 255, 255, 255)
LUMA = (0.299, 0.587, 0.114)
DEEP_GREYS = ("I", "I;16", "I;16L", "I;16B", "I;16N")


class UnreadableImageError(DataError):
    """A picture that cannot be decoded; `skip_unreadable=True` passes over it."""


def decode(path: Path, size: int, channels: int = COLOUR) -> np.ndarray:
    """The picture as uint8 of channels × size × size: colour, or a stack of as many channels."""
    pixels = read_special(path)
    found = COLOUR if pixels is None else len(pixels)
    if found != channels:
        raise _unreadable(path, f"it has {found} channels, {channels} were expected")
    if pixels is not None:
        return fit_square(pixels, size)
    with opened(path) as file:
        return fitted(file, size)


def read_special(path: Path) -> np.ndarray | None:
    """A stack, an array or DICOM as uint8 of channels × height × width; None for a plain picture."""
    if path.suffix.lower() not in STACKED:
        return None
    try:
        return read_stack(path) if is_special(path) else None
    except MissingExtraError:
        raise
    except Exception as error:  # damaged files fail in many ways
        raise _unreadable(path, error) from error


@contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """A picture file; any failure while it is read is an error that names it."""
    try:
        with open_picture(path) as file:
            check_pixels(*file.size)
            yield file
    except Exception as error:  # damaged files make Pillow fail in many ways
        raise _unreadable(path, error) from error


def plain_pixels(picture: Image.Image) -> np.ndarray:
    """A picture as uint8 of channels × height × width, upright, of its own size: grey has one channel."""
    upright = _upright(picture)
    grey = upright.mode in ("1", "L")
    pixels = np.array(upright.convert("L") if grey else _on_white(upright))
    return pixels[None] if grey else pixels.transpose(2, 0, 1)


def read_picture(
    path: Path, shape: tuple[int, int, int], margin: float = 1.0
) -> Float[Tensor, "channels height width"]:
    """A file's picture as a model of pictures of `shape` takes it: its size, its channels, in [0, 1].

    With a margin the centre of a larger picture is taken, as in training (`margins.py`).
    """
    channels = COLOUR if shape[0] == 1 else shape[0]
    return as_input(decode(path, larger_size(max(shape[1:]), margin), channels), shape)


def as_input(pixels: np.ndarray, shape: tuple[int, int, int]) -> Float[Tensor, "channels height width"]:
    """Square pixels, as `decode` and `fitted` give them, cropped to `shape`, grey if it is, in [0, 1]."""
    channels, height, width = shape
    if channels not in (1, len(pixels)):
        raise NotApplicableError(f"the model takes {channels} channels, this picture has {len(pixels)}")
    side = pixels.shape[-1]
    top, left = (side - height) // 2, (side - width) // 2
    picture = torch.from_numpy(pixels[:, top : top + height, left : left + width].copy()).float() / 255
    return _in_channels(picture, channels)


def _in_channels(picture: Tensor, channels: int) -> Float[Tensor, "channels height width"]:
    """RGB, or its luma."""
    if channels == 1:
        return torch.einsum("chw,c->hw", picture, torch.tensor(LUMA))[None].clamp(0, 1)
    return picture


def fitted(file: Image.Image, size: int) -> np.ndarray:
    """An opened picture, decoded to uint8 of 3 × size × size."""
    file.draft(None, (2 * size, 2 * size))  # lets a JPEG decode at a fraction of its size
    square = ImageOps.fit(_on_white(_upright(file)), (size, size), Image.Resampling.BICUBIC)
    return np.asarray(square).transpose(2, 0, 1)


def read_whole(
    path: Path, shape: tuple[int, int, int], native: bool = False, margin: float = 1.0
) -> Float[Tensor, "channels height width"]:
    """A file's whole picture for a model of `shape`, in [0, 1]; nothing is cropped.

    Its shorter side takes the model's size and margin, the longer one what is due to it; with `native` both
    stay, unless they are smaller than that.
    """
    channels, height, width = shape
    pixels = upright_rgb(path)
    scale = max(height / pixels.shape[0], width / pixels.shape[1])
    scale = scale if native else scale * larger_size(max(height, width), margin) / max(height, width)
    if not native or scale > 1:
        rows, cols = (max(least, round(scale * n)) for n, least in zip(pixels.shape, shape[1:], strict=False))
        pixels = np.array(Image.fromarray(pixels).resize((cols, rows), Image.Resampling.BICUBIC))
    return _in_channels(torch.from_numpy(pixels).movedim(-1, 0).float() / 255, channels)


def upright_rgb(path: Path) -> np.ndarray:
    """A file's whole picture as uint8 of height × width × 3, upright.

    A stack of channels is shown by its first three, or by its mean if it has but two.
    """
    pixels = read_special(path)
    if pixels is not None:
        shown = pixels[:3] if len(pixels) > 2 else np.repeat(pixels.mean(0, keepdims=True), 3, 0)
        return np.ascontiguousarray(shown.astype(np.uint8).transpose(1, 2, 0))
    with opened(path) as file:
        return np.array(_on_white(_upright(file)))


def _unreadable(path: Path, reason: object) -> UnreadableImageError:
    return UnreadableImageError(
        f"{path} cannot be read as a picture ({reason}): replace it, remove it, or pass skip_unreadable=True"
    )


def _upright(picture: Image.Image) -> Image.Image:
    turned = ImageOps.exif_transpose(picture)
    return _shallow(turned) if turned.mode in DEEP_GREYS else turned


def _shallow(picture: Image.Image) -> Image.Image:
    """16-bit greys scaled to 8 bits; Pillow's own conversion would clip them to white."""
    values = np.asarray(picture)
    if values.min() < 0 or values.max() > 65535:
        raise ValueError("its values exceed 16 bits, convert it to 8 or 16 bits first")
    scaled = values.astype(np.uint32)
    scaled += 128
    scaled //= 257  # v / 257, rounded, without the eight bytes that a float would take
    return Image.fromarray(scaled.astype(np.uint8))


def _on_white(picture: Image.Image) -> Image.Image:
    if picture.mode == "F":
        raise ValueError("its values are floats of unknown range, convert it to 8 or 16 bits first")
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    ground = Image.new("RGBA", picture.size, BACKGROUND)
    return Image.alpha_composite(ground, picture.convert("RGBA")).convert("RGB")
