"""Batched inference: every picture is in the batch twice, as x and as T x.

    I(T x) and T(I x) come from one pass through the network, so that one step of a drag is one request.
    raw   = cos(m ⊙ T(I x), m ⊙ I(T x))
    floor = mean over samples x′ ≠ x of cos(m ⊙ T(I x′), m ⊙ I(T x))

m is 1 where T shows the picture. The definitions are those of `torchsite.metrics`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from torchsite.errors import NotApplicableError
from torchsite.metrics.carried import carry
from torchsite.metrics.grouping import calibrated
from torchsite.metrics.patch_deletion import PatchDeletion
from torchsite.model import SITE, Explanation
from torchsite.shapes import Heatmaps, Images, Labels, Logits
from torchsite.transforms.affine import AffineTransform
from torchsite.web.brush import Brush, BrushScores
from torchsite.web.library import OWN, Library, Served

Explainer = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Job:
    """One request: a picture, a transform, and the explainers to compare."""

    model: str
    picture: Tensor
    transform: AffineTransform
    explainers: tuple[Explainer, ...]
    label: int | None = None
    against: int | None = None
    top: int = 10
    corners: str = "black"
    hidden: Tensor | None = None
    hiding: bool = False


@dataclass(frozen=True, eq=False)
class MapScores:
    """Self-consistency of one explainer on one picture; None where the transform leaves nothing to see."""

    raw: float | None
    floor: float | None
    calibrated: float | None
    centred: float | None


@dataclass(frozen=True, eq=False)
class MapPair:
    """I(T x), T(I x), and how alike they are."""

    renewed: Tensor
    carried: Tensor
    scores: MapScores
    hiding: float | None = None


@dataclass(frozen=True, eq=False)
class JobResult:
    """The result of one job; rows 0 and 1 of logits and explanation are x and T x."""

    job: Job
    images: Images
    logits: Logits
    label: int
    explanation: Explanation | None
    pairs: dict[Explainer, MapPair]
    skipped: dict[Explainer, str]
    brushed: dict[Explainer, BrushScores] = field(default_factory=dict)
    hidden_share: float = 0.0


@dataclass(frozen=True, eq=False)
class Pass:
    """The pictures of all jobs of one model, those of x first, and what the model answers."""

    images: Images
    logits: Logits
    explanation: Explanation | None


def answer(library: Library, jobs: Sequence[Job]) -> list[JobResult]:
    """The results in the order of the jobs; jobs of one model share its passes."""
    found: dict[int, JobResult] = {}
    for name in dict.fromkeys(job.model for job in jobs):
        places = [i for i, job in enumerate(jobs) if job.model == name]
        answers = _of_one_model(library, library[name], [jobs[i] for i in places])
        found |= dict(zip(places, answers, strict=True))
    return [found[i] for i in range(len(jobs))]


def _of_one_model(library: Library, served: Served, jobs: list[Job]) -> list[JobResult]:
    n = len(jobs)
    transform = AffineTransform(torch.cat([job.transform.matrix for job in jobs]))
    still = torch.stack([job.picture for job in jobs])
    whole = _pass(served, torch.cat([still, _moved(still, transform, jobs)]))
    predicted = whole.logits[:n].argmax(1)
    labels = torch.tensor(
        [int(p) if job.label is None else job.label for job, p in zip(jobs, predicted, strict=True)]
    )
    pairs: list[dict[Explainer, MapPair]] = [{} for _ in jobs]
    skipped: list[dict[Explainer, str]] = [{} for _ in jobs]
    for explainer in dict.fromkeys(e for job in jobs for e in job.explainers):
        rows = torch.tensor([i for i, job in enumerate(jobs) if explainer in job.explainers])
        try:
            maps = _maps(library, served, explainer, whole, labels, rows)
        except NotApplicableError as error:
            for i in rows.tolist():
                skipped[i][explainer] = str(error)
            continue
        owner = library[explainer[1]]
        for i, pair in zip(
            rows.tolist(), _pairs(owner, explainer[0], maps, still[rows], transform[rows]), strict=True
        ):
            hiding = _hiding(owner, whole.images[n + i], pair.renewed, labels[i]) if jobs[i].hiding else None
            pairs[i][explainer] = replace(pair, hiding=hiding)
    found = [
        JobResult(
            job,
            whole.images[[i, n + i]],
            whole.logits[[i, n + i]],
            int(labels[i]),
            _rows(whole.explanation, [i, n + i]),
            pairs[i],
            skipped[i],
        )
        for i, job in enumerate(jobs)
    ]
    return [result if result.job.hidden is None else _brushed(library, result) for result in found]


def _moved(still: Images, transform: AffineTransform, jobs: list[Job]) -> Images:
    """T x of every job, with the corners that it asked for."""
    moved = transform(still)
    for corners in {job.corners for job in jobs} - {"black"}:
        rows = torch.tensor([i for i, job in enumerate(jobs) if job.corners == corners])
        moved[rows] = transform[rows](still[rows], fill=corners)
    return moved


def _hiding(served: Served, image: Tensor, heatmap: Tensor, label: Tensor) -> float:
    """Patch deletion of one heatmap (Spearman)."""
    metric = PatchDeletion(lambda images, classes: heatmap[None], served.model, n_resamples=0)
    metric.update(image[None], label[None])
    return float(metric.result().correlation.value)


@torch.no_grad()
def _brushed(library: Library, result: JobResult) -> JobResult:
    """The result, and what hiding a part does to each model that is explained."""
    job = result.job
    assert job.hidden is not None
    brush = Brush.over(result.images[0], result.images[1], job.transform, job.hidden)
    both = torch.cat([brush.moved, brush.hidden])
    owners = dict.fromkeys(name for _, name in result.pairs)
    logits = {name: library[name].model(both)[:, result.label].tolist() for name in owners}
    scores = {
        explainer: brush.scores(pair.renewed, *logits[explainer[1]])
        for explainer, pair in result.pairs.items()
    }
    return replace(result, brushed=scores, hidden_share=brush.share(job.transform))


def _pass(served: Served, images: Images) -> Pass:
    if isinstance(served.model, SITE):
        explanation = served.model.explain(images)
        return Pass(images, explanation.logits, explanation)
    with torch.no_grad():
        return Pass(images, served.model(images), None)


def _maps(
    library: Library, asked: Served, explainer: Explainer, whole: Pass, labels: Labels, rows: Tensor
) -> Heatmaps:
    """The maps of x and of T x of some jobs, x first; a model's own come from the pass that is there."""
    method, name = explainer
    both = torch.cat([rows, rows + len(labels)])
    classes = labels[rows].repeat(2)
    if method == OWN and name == asked.name and whole.explanation is not None:
        own = _rows(whole.explanation, both.tolist())
        assert own is not None
        return own.heatmaps(classes=classes)
    return library[name].explainer(method)(whole.images[both], classes)


def _pairs(
    served: Served, method: str, maps: Heatmaps, still: Images, transform: AffineTransform
) -> list[MapPair]:
    """Carry I(x), and the explanations of other pictures for the floor, and compare with I(T x)."""
    untouched, renewed = maps.chunk(2)
    others, explained = served.partners(method)
    both = carry(untouched, renewed, transform, explained.expand(len(still), *explained.shape))
    differ = (still[:, None] != others).flatten(2).any(2)
    raw, floor = both.raw, (both.mismatched * differ).sum(1) / differ.sum(1).clamp_min(1)
    scores = torch.stack([raw, floor, calibrated(raw, floor), both.centred], dim=1)
    return [
        MapPair(
            both.renewed[i],
            both.carried[i],
            MapScores(*scores[i].tolist()) if both.visible[i] else MapScores(None, None, None, None),
        )
        for i in range(len(still))
    ]


def _rows(explanation: Explanation | None, rows: list[int]) -> Explanation | None:
    """The part of an explanation that belongs to some pictures."""
    if explanation is None:
        return None
    return replace(
        explanation,
        images=explanation.images[rows],
        features=explanation.features[rows],
        prototypes=explanation.prototypes[rows],
        evidence=explanation.evidence[rows],
    )


Answerer = Callable[[Sequence[Job]], list[JobResult]]
