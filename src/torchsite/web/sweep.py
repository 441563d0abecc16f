"""A full turn as an animation: the moved picture, then for each explainer I(T x) beside T(I x)."""

import io
from collections.abc import Sequence

import torch
from matplotlib import colormaps
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from torchsite.errors import NotApplicableError
from torchsite.model.drawing import COLOURS
from torchsite.report.format import method_name
from torchsite.web.engine import Explainer, JobResult, MapPair
from torchsite.web.library import OWN
from torchsite.web.pictures import to_image

PANEL = 168
GAP = 12
HEAD = 40
TITLE = 22
LABEL = 24
PAPER, INK, FAINT = (255, 255, 255), (24, 26, 30), (105, 110, 118)
LAP_SECONDS = 6


def angles(frames: int) -> list[float]:
    """One lap from 0°, evenly."""
    return [360 * k / frames for k in range(frames)]


def animate(results: Sequence[JobResult], degrees: Sequence[float]) -> bytes:
    """The frames as an endless GIF; the colours of a row mean the same in all frames."""
    limits = {
        explainer: max(float(_both(result.pairs[explainer]).abs().max()) for result in results) or 1.0
        for explainer in _in_all(results)
    }
    pages = [_page(result, angle, limits) for result, angle in zip(results, degrees, strict=True)]
    buffer = io.BytesIO()
    pages[0].save(
        buffer,
        "GIF",
        save_all=True,
        append_images=pages[1:],
        duration=round(1000 * LAP_SECONDS / len(pages)),
        loop=0,
        optimize=True,
    )
    return buffer.getvalue()


def _in_all(results: Sequence[JobResult]) -> list[Explainer]:
    """The explainers that have a meaning in every frame, or an error that gives the reason of the first."""
    common = [explainer for explainer in results[0].pairs if all(explainer in f.pairs for f in results)]
    if not common:
        raise NotApplicableError(next(reason for f in results for reason in f.skipped.values()))
    return common


def _both(pair: MapPair) -> Tensor:
    return torch.stack([pair.renewed, pair.carried])


def _page(result: JobResult, angle: float, limits: dict[Explainer, float]) -> Image.Image:
    width = 3 * PANEL + 4 * GAP
    page = Image.new("RGB", (width, HEAD + len(limits) * (TITLE + PANEL + LABEL) + GAP), PAPER)
    pen = ImageDraw.Draw(page)
    small, large = ImageFont.load_default(13), ImageFont.load_default(16)
    pen.text((GAP, 12), f"T: turned by {angle:.0f}°", INK, large)
    columns = [GAP + k * (PANEL + GAP) for k in range(3)]
    for row, explainer in enumerate(limits):
        pair = result.pairs[explainer]
        top = HEAD + row * (TITLE + PANEL + LABEL) + TITLE
        maps = [_coloured(values, limits[explainer]) for values in (pair.renewed, pair.carried)]
        for left, picture in zip(columns, [to_image(result.images[1]).convert("RGB"), *maps], strict=True):
            page.paste(picture.resize((PANEL, PANEL), Image.Resampling.NEAREST), (left, top))
            pen.rectangle((left, top, left + PANEL - 1, top + PANEL - 1), outline=(215, 218, 222))
        raw = pair.scores.raw
        said = ["T x", "I(T x)", "T(I x)" if raw is None else f"T(I x)   alike: {raw:.2f}"]
        for left, text in zip(columns, said, strict=True):
            pen.text((left, top + PANEL + 2), text, FAINT, small)
        pen.text((GAP, top - TITLE + 2), _title(*explainer), INK, small)
    return page


def _title(method: str, model: str) -> str:
    name = "own explanation" if method == OWN else method_name(method)
    return f"{name} of {model}"


def _coloured(values: Tensor, limit: float) -> Image.Image:
    shares = (values.numpy() / limit + 1) / 2
    return Image.fromarray(colormaps[COLOURS](shares, bytes=True)[..., :3].copy())
