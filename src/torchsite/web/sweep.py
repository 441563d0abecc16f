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
from torchsite.web.engine import MOVED, Explainer, JobResult
from torchsite.web.library import OWN
from torchsite.web.pictures import to_image

PANEL, GAP, HEAD, TITLE, LABEL = 168, 12, 40, 22, 24  # pixels
ROW = TITLE + PANEL + LABEL
PAPER, INK, FAINT, EDGE = (255, 255, 255), (24, 26, 30), (105, 110, 118), (215, 218, 222)
LAP_SECONDS = 6


def angles(frames: int) -> list[float]:
    """One lap from 0°, evenly."""
    return [360 * k / frames for k in range(frames)]


def animate(results: Sequence[JobResult], degrees: Sequence[float]) -> bytes:
    """The frames as an endless GIF; the colours of a row mean the same in all frames."""
    limits = {e: max(_limit(result, e) for result in results) or 1.0 for e in _in_all(results)}
    first, *rest = (_frame(result, angle, limits) for result, angle in zip(results, degrees, strict=True))
    duration = round(1000 * LAP_SECONDS / len(results))
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=rest, duration=duration, loop=0, optimize=True)
    return buffer.getvalue()


def _in_all(results: Sequence[JobResult]) -> list[Explainer]:
    """The explainers that apply in every frame; if there are none, an error that says why."""
    common = [explainer for explainer in results[0].pairs if all(explainer in f.pairs for f in results)]
    if not common:
        raise NotApplicableError(next(reason for f in results for reason in f.skipped.values()))
    return common


def _limit(result: JobResult, explainer: Explainer) -> float:
    pair = result.pairs[explainer]
    return float(torch.stack([pair.renewed, pair.carried]).abs().max())


def _frame(result: JobResult, angle: float, limits: dict[Explainer, float]) -> Image.Image:
    frame = Image.new("RGB", (3 * PANEL + 4 * GAP, HEAD + len(limits) * ROW + GAP), PAPER)
    pen = ImageDraw.Draw(frame)
    small, large = ImageFont.load_default(13), ImageFont.load_default(16)
    pen.text((GAP, 12), f"T: turned by {angle:.0f}°", INK, large)
    for row, (explainer, limit) in enumerate(limits.items()):
        pair, top = result.pairs[explainer], HEAD + row * ROW + TITLE
        method, model = explainer
        name = "own explanation" if method == OWN else method_name(method)
        pen.text((GAP, top - TITLE + 2), f"{name} of {model}", INK, small)
        alike = "" if pair.scores.raw is None else f"   alike: {pair.scores.raw:.2f}"
        panels = {
            "T x": to_image(result.images[MOVED]).convert("RGB"),
            "I(T x)": _coloured(pair.renewed, limit),
            f"T(I x){alike}": _coloured(pair.carried, limit),
        }
        for column, (text, picture) in enumerate(panels.items()):
            left = GAP + column * (PANEL + GAP)
            frame.paste(picture.resize((PANEL, PANEL), Image.Resampling.NEAREST), (left, top))
            pen.rectangle((left, top, left + PANEL - 1, top + PANEL - 1), outline=EDGE)
            pen.text((left, top + PANEL + 2), text, FAINT, small)
    return frame


def _coloured(values: Tensor, limit: float) -> Image.Image:
    shares = (values.numpy() / limit + 1) / 2
    return Image.fromarray(colormaps[COLOURS](shares, bytes=True)[..., :3].copy())
