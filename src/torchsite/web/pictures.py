"""Untrusted uploads: the size is checked before decoding, the format by content, no path is used."""

import base64
import binascii
import io

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from torchsite.data.margins import larger_size
from torchsite.data.pictures import as_input, fitted
from torchsite.shapes import Maps, Size
from torchsite.web.problems import ProblemError
from torchsite.web.schemas import MapOut
from torchsite.web.settings import FORMATS


def from_base64(text: str) -> bytes:
    """The bytes of a picture file; a data URI is taken as well."""
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ProblemError(
            422, "bad_picture", f"image: expected a picture file in base64 ({error})"
        ) from error


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
    except Exception as error:  # damaged files make Pillow fail in many ways
        raise ProblemError(422, "bad_picture", _reason(error)) from error
    return 1 - picture if invert else picture


def hidden_pixels(text: str | None, size: Size) -> Tensor | None:
    """The pixels that a brush hides, from one bit each, row by row, the first bit the highest of its byte."""
    if text is None:
        return None
    n, expected = size[0] * size[1], -(-size[0] * size[1] // 8)
    if len(text) != 4 * -(-expected // 3):
        reason = f"hidden: expected {expected} bytes in base64, a bit for each of {size[0]}×{size[1]} pixels"
        raise ProblemError(422, "invalid", f"{reason}, got {len(text)} characters")
    try:
        bits = np.unpackbits(np.frombuffer(base64.b64decode(text, validate=True), np.uint8))
    except (binascii.Error, ValueError) as error:
        raise ProblemError(422, "invalid", f"hidden: expected bits in base64 ({error})") from error
    if len(bits) != 8 * expected:
        raise ProblemError(422, "invalid", f"hidden: expected {expected} bytes, got {len(bits) // 8}")
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


def quantise(heatmap: Maps, limit: float | None = None) -> MapOut:
    """A signed map in bytes, on a scale that is symmetric about zero."""
    bound = float(heatmap.abs().max()) if limit is None else limit
    steps = (heatmap * (127 / bound if bound > 0 else 0.0)).round().clamp(-127, 127).to(torch.int8)
    data = base64.b64encode(steps.contiguous().numpy().tobytes()).decode()
    return MapOut(rows=heatmap.shape[-2], cols=heatmap.shape[-1], limit=bound, data=data)


def _too_large(size: str, max_pixels: int) -> ProblemError:
    reason = f"image: {size} is more than the {max_pixels:,} pixels allowed here: make it smaller first"
    return ProblemError(413, "too_many_pixels", reason)


def _reason(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return f"image: its content is none of {', '.join(FORMATS)}: send one of these"
    return f"image: it cannot be decoded ({error}): it may be damaged"
