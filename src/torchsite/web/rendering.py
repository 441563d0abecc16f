"""Results as the compact JSON that the page draws."""

import base64
from typing import Any

import torch

from torchsite.model import Explanation
from torchsite.model.explanation import enlarge
from torchsite.shapes import Logits, Maps
from torchsite.web.engine import MOVED, JobResult, MapPair
from torchsite.web.pictures import png
from torchsite.web.schemas import Answer, Detail, Evidence, Explained, MapOut, Row, Why

TOP = 10  # so many classes come with their heatmaps


def render(result: JobResult) -> Explained:
    """The whole answer to one question."""
    explanation, job, label = result.explanation, result.job, result.label
    still, moved = (png(image) if job.pictures else None for image in result.images)
    reasons: dict[str, Any] = {"evidence": [], "detail": [], "why": None}
    if explanation is not None:
        asked = dict.fromkeys([label] if job.against is None else [label, job.against])
        reasons["evidence"] = _evidence(result, explanation, list(asked))
        reasons["detail"] = [_detail(explanation, index) for index in asked]
        if job.against is not None:
            heatmap = explanation.contrast(label, job.against)[MOVED]
            parts, difference = _signed(label, heatmap), float(heatmap.sum())
            reasons["why"] = Why(**parts, against=job.against, difference=difference)
    return Explained(
        model=job.model,
        kind="black_box" if explanation is None else "site",
        image=still,
        moved=moved,
        still=_answer(result.logits[0]),
        turned=_answer(result.logits[MOVED]),
        explained=label,
        hidden=result.hidden_share,
        rows=[_row(*explainer, pair) for explainer, pair in result.pairs.items()],
        skipped={f"{method}@{model}": reason for (method, model), reason in result.skipped.items()},
        **reasons,
    )


def quantise(heatmap: Maps, limit: float | None = None) -> MapOut:
    """A signed map in bytes, on a scale that is symmetric about zero."""
    bound = float(heatmap.abs().max()) if limit is None else limit
    steps = (heatmap * (127 / bound if bound > 0 else 0.0)).round().clamp(-127, 127).to(torch.int8)
    data = base64.b64encode(steps.contiguous().numpy().tobytes()).decode()
    return MapOut(rows=heatmap.shape[-2], cols=heatmap.shape[-1], limit=bound, data=data)


def _answer(logits: Logits) -> Answer:
    values, shares = ([round(value, 5) for value in row.tolist()] for row in (logits, logits.softmax(0)))
    return Answer(predicted=int(logits.argmax()), logits=values, probabilities=shares)


def _row(method: str, model: str, pair: MapPair) -> Row:
    """Both maps on one scale, so that what is seen is what the scores compare."""
    limit = float(torch.stack([pair.renewed, pair.carried]).abs().max())
    renewed, carried = quantise(pair.renewed, limit), quantise(pair.carried, limit)
    return Row(method=method, model=model, renewed=renewed, carried=carried, **dict(pair.scores))


def _evidence(result: JobResult, explanation: Explanation, asked: list[int]) -> list[Evidence]:
    """The strongest classes with their heatmaps, on one scale; the requested ones are among them."""
    logits = result.logits[MOVED]
    order = logits.argsort(descending=True).tolist()
    chosen = [i for rank, i in enumerate(order) if rank < TOP or i in asked]
    height, width = explanation.images.shape[-2:]
    heatmaps = enlarge(explanation.evidence[MOVED : MOVED + 1, chosen], (height, width))[0]
    limit = float(heatmaps.abs().max())
    return [
        Evidence(**_signed(i, heatmap, limit), name=explanation.classes[i], logit=float(logits[i]))
        for i, heatmap in zip(chosen, heatmaps, strict=True)
    ]


def _signed(index: int, heatmap: Maps, limit: float | None = None) -> dict[str, Any]:
    """The fields of `Signed`."""
    gained, lost = float(heatmap.clamp_min(0).sum()), float(heatmap.clamp_max(0).sum())
    return {"index": index, "gained": gained, "lost": lost, "heatmap": quantise(heatmap, limit)}


def _detail(explanation: Explanation, index: int) -> Detail:
    pictures = explanation.prototype_pictures(MOVED)
    return Detail(
        index=index,
        name=explanation.classes[index],
        features=png(explanation.features[MOVED]) if explanation.pixels_are_features else None,
        prototype=None if pictures is None else png(pictures[index]),
        contributions=quantise(explanation.evidence[MOVED, index]),
        logit=float(explanation.evidence[MOVED, index].sum()),
    )
