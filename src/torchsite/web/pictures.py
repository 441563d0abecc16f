"""Untrusted uploads: the size is checked before decoding, the format by content, no path is used."""

import base64
import io

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from torchsite.data.margins import larger_size
from torchsite.data.pictures import as_input, fitted
from torchsite.shapes import Size
from torchsite.web.problems import ProblemError

# What Pillow may try, whatever a file is called and whatever its sender says it is.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")


def from_base64(text: str) -> bytes:
    """The bytes of a picture file; a data URI is taken as well."""
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise _unusable(f"expected a picture file in base64 ({error})") from error


def read_picture(
    content: bytes, shape: tuple[int, int, int], *, max_pixels: int, invert: bool, margin: float = 1.0
) -> Tensor:
    """A file's picture as the model takes it: upright, its size (aspect kept, centre crop), [0, 1]."""
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as file:
            if file.width * file.height > max_pixels:
                raise _too_large(f"{file.width}×{file.height}", max_pixels)
            picture = as_input(fitted(file, larger_size(max(shape[1:]), margin)), shape)
    except ProblemError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):  # Pillow's own, higher limit
        raise _too_large("its size", max_pixels) from None
    except UnidentifiedImageError as error:
        raise _unusable(f"its content is none of {', '.join(FORMATS)}: send one of these") from error
    except Exception as error:  # damaged files make Pillow fail in many ways
        raise _unusable(f"it cannot be decoded ({error}): it may be damaged") from error
    return 1 - picture if invert else picture


def hidden_pixels(text: str | None, size: Size) -> Tensor | None:
    """The pixels that a brush hides, from one bit each, row by row, the first bit the highest of its byte."""
    if text is None:
        return None
    n = size[0] * size[1]
    expected = f"hidden: expected {-(-n // 8)} bytes in base64, a bit for each of {size[0]}×{size[1]} pixels"
    if len(text) != 4 * -(-n // 24):
        raise ProblemError(422, "invalid", f"{expected}, got {len(text)} characters")
    try:
        bits = np.unpackbits(np.frombuffer(base64.b64decode(text, validate=True), np.uint8))
    except ValueError as error:
        raise ProblemError(422, "invalid", f"{expected} ({error})") from error
    if len(bits) != 8 * -(-n // 8):
        raise ProblemError(422, "invalid", f"{expected}, got {len(bits) // 8}")
    return torch.from_numpy(bits[:n].astype(bool)).reshape(size)


def to_image(picture: Tensor) -> Image.Image:
    """A grey or colour picture in [0, 1] as an image of 8 bits."""
    pixels = (picture.detach().float().clamp(0, 1) * 255).round().to(torch.uint8).numpy()
    return Image.fromarray(pixels[0] if len(pixels) != 3 else np.ascontiguousarray(pixels.transpose(1, 2, 0)))


def png(picture: Tensor) -> str:
    """A grey or colour picture in [0, 1] as a small PNG file in base64."""
    buffer = io.BytesIO()
    to_image(picture).save(buffer, "PNG", compress_level=1)
    return base64.b64encode(buffer.getvalue()).decode()


def _too_large(size: str, max_pixels: int) -> ProblemError:
    reason = f"image: {size} is more than the {max_pixels:,} pixels allowed here: make it smaller first"
    return ProblemError(413, "too_many_pixels", reason)


def _unusable(reason: str) -> ProblemError:
    return ProblemError(422, "bad_picture", f"image: {reason}")
