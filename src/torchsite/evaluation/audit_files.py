"""The file of an audit: its numbers, how its model was called, and some pictures of its strongest groups.

Pictures are PNG in base64, the group in each a bit for every pixel, row by row: as the page takes them.
"""

import base64
import io
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from torchsite.errors import ConfigError, DataError
from torchsite.evaluation.audit import Audit, strongest_first
from torchsite.results import Result

N_GROUPS, N_PICTURES = 12, 6  # whose pictures are kept


def to_file(audit: Audit, model: str) -> Result:
    """The result of an audit as its file keeps it; `model` is what opens the model again."""
    numbers = (group["number"] for group in strongest_first(audit.groups))
    somewhere = (number for number in numbers if audit.parts[number].masks.any())
    shown = set(itertools.islice(somewhere, N_GROUPS))
    groups = [
        group | {"shown_in": _pictures(audit, group["number"])} if group["number"] in shown else group
        for group in audit.groups
    ]
    values = {**audit.result.values, "groups": groups}
    return replace(audit.result, values=values, config={**audit.result.config, "opened": model})


def read_audit(path: Path) -> Result:
    """The audit of a file; anything else is an error."""
    try:
        result = Result.load(path)
    except (OSError, DataError) as error:
        raise ConfigError(f"no audit at {path} ({error}): expected the JSON of `torchsite audit`") from error
    if result.name != "audit" or "centres" not in result.values or "opened" not in result.config:
        raise ConfigError(
            f"{path} is no audit, or was made by an earlier version: run `torchsite audit` again"
        )
    return result


def _pictures(audit: Audit, number: int) -> list[dict[str, str]]:
    part = audit.parts[number].first(N_PICTURES)
    pixels = audit.pictures.images[part.rows]
    return [{"image": _png(one), "hidden": _bits(mask)} for one, mask in zip(pixels, part.masks, strict=True)]


def _png(pixels: Tensor) -> str:
    buffer, last = io.BytesIO(), pixels.permute(1, 2, 0).contiguous().numpy()
    Image.fromarray(last if last.shape[-1] == 3 else last[..., 0]).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def _bits(mask: Tensor) -> str:
    return base64.b64encode(np.packbits(mask.flatten().numpy()).tobytes()).decode()
