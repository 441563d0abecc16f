"""`torchsite explain`: what a model sees in pictures, and why."""

import io
import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from torchsite.cli.terminal import terminal
from torchsite.data.pictures import decode
from torchsite.errors import DataError, NotApplicableError
from torchsite.model import SITE, Explanation, load
from torchsite.model.drawing import draw_explanation, png
from torchsite.results import write_atomically
from torchsite.shapes import Images

ENDINGS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}


LUMA = (0.299, 0.587, 0.114)


class Format(StrEnum):
    """What to write for each picture."""

    png = "png"
    json = "json"
    npz = "npz"


def explain(
    pictures: Annotated[list[Path], typer.Argument(help="Pictures, or folders of them.")],
    model: Annotated[str, typer.Option(help="A shipped model's name, a folder, or a hub id.")] = "mnist",
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("out"),
    format: Annotated[
        Format, typer.Option(help="png: a sheet; json: numbers; npz: raw arrays.")
    ] = Format.png,
    as_json: Annotated[bool, typer.Option("--json", help="Print machine-readable lines.")] = False,
) -> None:
    """Predict, and write the reasons: the heatmaps whose sums are the logits.

    torchsite explain digit.png --model mnist --out out
    """
    console = terminal()
    loaded = load(model)
    if not isinstance(loaded, SITE):
        raise NotApplicableError(
            f"{model!r} is a black box, which has no explanation of its own: use `compare`"
        )
    for path in _files(pictures):
        explanation = loaded.explain(read_images(path, loaded.config.image_shape))
        written = _write(explanation, out / f"{path.stem}.{format.value}", format)
        line = summary(explanation) | {"picture": str(path), "written": str(written)}
        console.print_json(json.dumps(line)) if as_json else console.print(_sentence(line))


def read_images(path: Path, shape: tuple[int, int, int]) -> Images:
    """One picture as the model takes it: its size (aspect kept, centre crop), its channels, [0, 1]."""
    channels, height, width = shape
    side = max(height, width)
    pixels = torch.from_numpy(decode(path, side).copy()).float()[None] / 255
    top, left = (side - height) // 2, (side - width) // 2
    cropped = pixels[..., top : top + height, left : left + width]
    if channels == 1:
        return torch.einsum("nchw,c->nhw", cropped, torch.tensor(LUMA)).unsqueeze(1)
    if channels != 3:
        raise NotApplicableError(f"the model takes {channels} channels; pictures in files have one or three")
    return cropped.contiguous()


def summary(explanation: Explanation) -> dict[str, Any]:
    """The prediction, the runner-up, and which share of the winner's evidence is its own."""
    first, second = int(explanation.predicted[0]), int(explanation.runner_up()[0])
    probabilities = explanation.probabilities[0]
    contrast = explanation.why(first, second)[0]
    return {
        "prediction": explanation.classes[first],
        "probability": round(float(probabilities[first]), 4),
        "runner_up": explanation.classes[second],
        "runner_up_probability": round(float(probabilities[second]), 4),
        "evidence_for": round(float(contrast.clamp_min(0).sum()), 4),
        "evidence_against": round(float(-contrast.clamp_max(0).sum()), 4),
    }


def _sentence(line: dict[str, Any]) -> str:
    share = line["evidence_for"] / max(line["evidence_for"] + line["evidence_against"], 1e-9)
    return (
        f"{line['picture']}: {line['prediction']} ({line['probability']:.1%}), "
        f"then {line['runner_up']} ({line['runner_up_probability']:.1%}); "
        f"{share:.0%} of the evidence between them speaks for it → {line['written']}"
    )


def _write(explanation: Explanation, path: Path, format: Format) -> Path:
    if format is Format.png:
        return write_atomically(path, png(draw_explanation(explanation)))
    arrays = {
        "logits": explanation.logits[0].numpy(),
        "heatmaps": explanation.heatmaps()[0].numpy(),
        "prototypes": explanation.prototypes[0].numpy(),
    }
    if format is Format.npz:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        return write_atomically(path, buffer.getvalue())
    text = json.dumps(
        {"classes": explanation.classes} | {key: value.tolist() for key, value in arrays.items()}
    )
    return write_atomically(path, text.encode())


def _files(pictures: list[Path]) -> Iterator[Path]:
    for path in pictures:
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*") if file.suffix.lower() in ENDINGS)
        elif path.is_file():
            yield path
        else:
            raise DataError(f"no picture at {path}: expected a file or a folder")
