"""Pictures as people have them, as the float images in [0, 1] that models take.

| input | result |
|---|---|
| a float tensor of a batch | itself |
| a uint8 tensor, channels first | divided by 255; one picture becomes a batch of one |
| a NumPy array, height × width (× channels), one or a batch | channels first; uint8 is divided by 255 |
| a Pillow picture, the path of a file | upright, 8 bits; with `shape` fitted to it, else of its own size |
| a `Dataset` | its pictures |
| a list of these | one batch |

Only Pillow pictures and files are fitted to a size: their shorter side takes it and the centre is cropped, as
everywhere here. Tensors and arrays must have the shape that the model takes; the model checks it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from torchsite.data.dataset import Dataset, to_float
from torchsite.data.margins import larger_size
from torchsite.data.pictures import as_input, fitted, opened, plain_pixels, read_picture, read_special
from torchsite.errors import ShapeError
from torchsite.shapes import Images

Shape = tuple[int, int, int]
ImagesLike: TypeAlias = Tensor | np.ndarray | Image.Image | str | Path | Dataset | Sequence[Any]
CHANNELS = (1, 3)


def as_images(pictures: ImagesLike, shape: Shape | None = None, margin: float = 1.0) -> Images:
    """A batch of float images in [0, 1]; `shape` (channels, height, width) is what files are fitted to.

    With a `margin` it is the centre of so many times larger a picture that has this shape (`margins.py`).
    """
    if isinstance(pictures, Tensor):
        return _from_tensor(pictures)
    if isinstance(pictures, np.ndarray):
        return _from_array(pictures, CHANNELS if shape is None else (*CHANNELS, shape[0]))
    if isinstance(pictures, Image.Image):
        return _from_picture(pictures, shape, margin)[None]
    if isinstance(pictures, str | Path):
        return _from_file(Path(pictures), shape, margin)[None]
    if isinstance(pictures, Dataset):
        return to_float(pictures.images)
    if isinstance(pictures, Sequence):
        return _together([as_images(picture, shape, margin) for picture in pictures])
    raise ShapeError(
        f"expected pictures, got {type(pictures).__name__}: pass a tensor, a NumPy array, a Pillow picture, "
        "a path, or a list of them"
    )


def _from_tensor(tensor: Tensor) -> Images:
    if tensor.ndim not in (3, 4):
        raise ShapeError(
            f"expected a tensor (batch, channels, height, width) or one picture (channels, height, width), "
            f"got {tuple(tensor.shape)}: add the missing axes with `unsqueeze`"
        )
    if tensor.shape[-1] in CHANNELS and tensor.shape[-3] not in CHANNELS:
        raise ShapeError(
            f"expected a tensor with channels first, got {tuple(tensor.shape)}, which looks like channels "
            "last: use `images.movedim(-1, -3)`"
        )
    batch = tensor if tensor.ndim == 4 else tensor[None]
    return batch if batch.is_floating_point() else to_float(_bytes(batch, batch.dtype == torch.uint8))


def _from_array(array: np.ndarray, channels: tuple[int, ...]) -> Images:
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim not in (3, 4):
        raise ShapeError(
            f"expected an array (height, width), (height, width, channels) or a batch of the latter, "
            f"got {array.shape}: add or remove axes"
        )
    batch = array if array.ndim == 4 else array[None]
    if batch.shape[-1] in channels:
        batch = batch.transpose(0, 3, 1, 2)
    elif batch.shape[1] not in channels:
        raise ShapeError(
            f"expected an array with 1 or 3 channels last, got {array.shape}: convert it, e.g. drop the "
            "alpha channel with `array[..., :3]`; a batch of grey pictures needs `array[..., None]`"
        )
    if not np.issubdtype(batch.dtype, np.floating):
        return to_float(torch.from_numpy(_bytes(batch, batch.dtype == np.uint8).copy()))
    if batch.size and (batch.min() < 0 or batch.max() > 1):
        raise ShapeError(
            f"expected a float array with values in [0, 1], got {batch.min():g} to {batch.max():g}: "
            "divide it by 255, or pass uint8"
        )
    return torch.from_numpy(batch.astype(np.float32))


def _bytes(values: Any, fits: bool) -> Any:
    if not fits:
        raise ShapeError(
            f"expected uint8 or floats in [0, 1], got {values.dtype}: scale the values to 0 to 255 and "
            "convert them to uint8"
        )
    return values


def _from_picture(picture: Image.Image, shape: Shape | None, margin: float) -> Tensor:
    """(channels, height, width), fitted to a shape or of its own."""
    if shape is not None:
        return as_input(fitted(picture, larger_size(max(shape[1:]), margin)), shape)
    return torch.from_numpy(plain_pixels(picture)).float() / 255


def _from_file(path: Path, shape: Shape | None, margin: float) -> Tensor:
    if shape is not None:
        return read_picture(path, shape, margin)
    pixels = read_special(path)
    if pixels is not None:
        return torch.from_numpy(pixels).float() / 255
    with opened(path) as file:
        return torch.from_numpy(plain_pixels(file)).float() / 255


def _together(images: list[Images]) -> Images:
    shapes = {tuple(image.shape[1:]) for image in images}
    if len(shapes) != 1:
        found = ", ".join(map(str, sorted(shapes))) or "none"
        raise ShapeError(
            f"expected pictures of one shape, got {found}: give files and Pillow pictures a shape to fit, "
            "`as_images(pictures, shape=(channels, height, width))`"
        )
    return torch.cat(images)
