"""A page without a server: one folder with the page, a model as ONNX, and ONNX Runtime for browsers.

    torchsite page mnist --out site/     →  any server of files, for example python -m http.server -d site

It is the page of `torchsite serve`, but a worker in the browser computes from the model's outputs what the
server computes with torch. Evidence leaves the model in the cells of its
features; `spreading` brings it to pixels, so that the sums stay those of `torchsite.model.explanation`.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchsite.data import Dataset
from torchsite.files import write_atomically
from torchsite.model import SITE
from torchsite.model.explanation import enlarge
from torchsite.model.export import export_onnx
from torchsite.model.gallery import Gallery
from torchsite.shapes import Images
from torchsite.version import __version__
from torchsite.web.groups import groups_of
from torchsite.web.library import N_PARTNERS, OWN, Library, Served
from torchsite.web.pictures import png
from torchsite.web.runtime import LICENCE, MACHINE, SCRIPT
from torchsite.web.samples import samples_for

STATIC = Path(__file__).with_name("static")
SERVER_ONLY = ("index.html", "server.js")
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "style-src 'self'; img-src 'self' data: blob:; media-src blob:; form-action 'none'; base-uri 'none'"
)
ASKS_SERVER, ASKS_BROWSER = 'data-answers="server"', 'data-answers="browser"'


@dataclass(frozen=True)
class WrittenPage:
    """The written folder, its size, and the largest difference of its model from the original."""

    folder: Path
    bytes: int
    max_difference: float


def write_page(
    model: SITE,
    name: str,
    folder: Path,
    runtime: Mapping[str, bytes],
    datasets: Sequence[Dataset] = (),
    audits: Sequence[Path] = (),
) -> WrittenPage:
    """Write everything that the page needs; `runtime` are the files of `runtime_files`."""
    (groups,) = groups_of([model], audits)
    served = Served(name, model, samples_for(model.config, datasets), groups)
    outputs = ["logits", "evidence"] + ["features"] * model.pixels_are_features
    outputs += ["prototypes"] * (model.pixels_are_features or model.gallery is not None)
    exported = export_onnx(model, folder / "page" / "model.onnx", tuple(outputs))
    own = (path for path in STATIC.rglob("*") if path.is_file() and path.name not in SERVER_ONLY)
    files = {f"static/{path.relative_to(STATIC).as_posix()}": path.read_bytes() for path in own} | {
        "page/ort.js": runtime[SCRIPT],
        f"page/{MACHINE}": runtime[MACHINE],
        "page/ort.LICENSE.txt": LICENCE.read_bytes(),
        "page/page.json": json.dumps(description(served), ensure_ascii=False).encode(),
        "index.html": _index().encode(),
    }
    for path, content in files.items():
        write_atomically(folder / path, content)
    sizes = [len(content) for content in files.values()]
    return WrittenPage(folder, sum(sizes) + exported.path.stat().st_size, exported.max_difference)


def description(served: Served) -> dict[str, Any]:
    """The description of model and samples for the page, as JSON."""
    model, samples = served.model, served.samples
    assert isinstance(model, SITE)
    _, height, width = model.config.image_shape
    rows, cols = model.feature_shape[1:]
    about = Library({served.name: served}).describe(served).model_dump(by_alias=True)
    about["methods"] = [method for method in about["methods"] if method["name"] == OWN]
    return {
        "version": __version__,
        "model": about,
        "samples": [sample.model_dump() for sample in samples.described()],
        "cells": [rows, cols],
        "down": packed(spreading(rows, height)),
        "across": packed(spreading(cols, width)),
        "partners": [packed(evidence) for evidence in partners(model, samples.images[:N_PARTNERS])],
        "gallery": None if model.gallery is None else exemplars(model.gallery),
    }


def exemplars(gallery: Gallery) -> dict[str, Any]:
    """A gallery for the page: pictures as they are, keys as bytes, which are near enough to find them by."""
    largest = gallery.keys.float().flatten(1).abs().amax(1).clamp_min(1e-12)
    steps = (gallery.keys.float() / largest[:, None, None, None] * 127).round().to(torch.int8)
    return {
        "labels": gallery.labels.tolist(),
        "pictures": [png(picture / 255) for picture in gallery.pictures],
        "size": list(gallery.pictures.shape[-2:]),
        "cells": list(gallery.keys.shape[-2:]),
        "reach": list(gallery.reach),
        "limits": [round(value, 6) for value in (largest / 127).tolist()],
        "keys": base64.b64encode(steps.numpy().tobytes()).decode(),
    }


@torch.no_grad()
def partners(model: SITE, images: Images) -> Tensor:
    """The evidence of samples for the class predicted on each, in cells: for the floor."""
    explanation = model.explain((images * 255).round() / 255)  # as the page's PNG files have them
    return explanation.evidence[torch.arange(len(images)), explanation.predicted]


def spreading(cells: int, pixels: int) -> Tensor:
    """(cells, pixels): how `enlarge` spreads the cells of one axis; heatmap = downᵀ · evidence · across."""
    return enlarge(torch.eye(cells)[None, :, None], (1, pixels))[0, :, 0]


def packed(values: Tensor) -> str:
    """Floats of 32 bits, little-endian, in base64."""
    return base64.b64encode(values.detach().float().contiguous().numpy().astype("<f4").tobytes()).decode()


def _index() -> str:
    """The HTML of the page without a server; its policy allows its own folder only."""
    html = (STATIC / "index.html").read_text(encoding="utf-8")
    assert ASKS_SERVER in html
    policy = f'<head>\n  <meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    return html.replace(ASKS_SERVER, ASKS_BROWSER).replace("<head>", policy, 1)
