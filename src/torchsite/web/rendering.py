"""Results as the compact JSON that the page draws."""

from dataclasses import asdict

import torch

from torchsite.model import Explanation
from torchsite.model.explanation import enlarge
from torchsite.shapes import Logits
from torchsite.web.brush import BrushScores
from torchsite.web.engine import JobResult, MapPair
from torchsite.web.pictures import png, quantise
from torchsite.web.schemas import Answer, Brushed, Detail, Evidence, Explained, Row, Why

MOVED = 1  # the row of T x in a result


def render(result: JobResult) -> Explained:
    """The whole answer to one question."""
    explanation = result.explanation
    against = result.job.against
    shown = [result.label] if against in (None, result.label) else [result.label, against]
    return Explained(
        model=result.job.model,
        kind="black_box" if explanation is None else "site",
        image=png(result.images[0]),
        moved=png(result.images[MOVED]),
        still=_answer(result.logits[0]),
        turned=_answer(result.logits[MOVED]),
        explained=result.label,
        hidden=result.hidden_share,
        rows=[
            _row(*explainer, pair, result.brushed.get(explainer)) for explainer, pair in result.pairs.items()
        ],
        evidence=[] if explanation is None else _evidence(result, explanation),
        detail=[]
        if explanation is None
        else [_detail(explanation, index) for index in shown if index is not None],
        why=None if explanation is None or against is None else _why(explanation, result.label, against),
        skipped={f"{method}@{model}": reason for (method, model), reason in result.skipped.items()},
    )


def _answer(logits: Logits) -> Answer:
    return Answer(
        predicted=int(logits.argmax()),
        logits=_rounded(logits),
        probabilities=_rounded(logits.softmax(0)),
    )


def _row(method: str, model: str, pair: MapPair, brushed: BrushScores | None) -> Row:
    """Both maps on one scale, so that the eye compares what the figure compares."""
    limit = float(torch.stack([pair.renewed, pair.carried]).abs().max())
    scores = pair.scores
    return Row(
        method=method,
        model=model,
        renewed=quantise(pair.renewed, limit),
        carried=quantise(pair.carried, limit),
        raw=scores.raw,
        floor=scores.floor,
        calibrated=scores.calibrated,
        centred=scores.centred,
        hiding=pair.hiding,
        brushed=None if brushed is None else Brushed(**asdict(brushed)),
    )


def _evidence(result: JobResult, explanation: Explanation) -> list[Evidence]:
    """The strongest classes with their heatmaps, on one scale; those asked for are among them."""
    logits = result.logits[MOVED]
    order = logits.argsort(descending=True).tolist()
    asked = [i for i in (result.label, result.job.against) if i is not None]
    chosen = [i for rank, i in enumerate(order) if rank < result.job.top or i in asked]
    height, width = explanation.images.shape[-2:]
    heatmaps = enlarge(explanation.evidence[MOVED : MOVED + 1, chosen], (height, width))[0]
    limit = float(heatmaps.abs().max())
    return [
        Evidence(
            index=index,
            name=explanation.classes[index],
            logit=float(logits[index]),
            gained=float(heatmap.clamp_min(0).sum()),
            lost=float(heatmap.clamp_max(0).sum()),
            heatmap=quantise(heatmap, limit),
        )
        for index, heatmap in zip(chosen, heatmaps, strict=True)
    ]


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


def _why(explanation: Explanation, index: int, against: int) -> Why:
    heatmap = explanation.contrast(index, against)[MOVED]
    return Why(
        index=index,
        against=against,
        heatmap=quantise(heatmap),
        gained=float(heatmap.clamp_min(0).sum()),
        lost=float(heatmap.clamp_max(0).sum()),
        difference=float(heatmap.sum()),
    )


def _rounded(values: Logits) -> list[float]:
    return [round(value, 5) for value in values.tolist()]
