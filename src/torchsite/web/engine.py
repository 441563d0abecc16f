"""Batched inference: every picture is in the batch twice, as x and as T x.

    I(T x) and T(I x) come from one pass through the network, so that one step of a drag is one request.
    raw     = cos(m ⊙ T(I x), m ⊙ I(T x))
    floor   = mean over samples x′ ≠ x of cos(m ⊙ T(I x′), m ⊙ I(T x))

m is 1 where T shows the picture. The definitions are those of `torchsite.metrics`. A brush hides a part of x,
which is patch deletion for one part of any shape:

    h       = T(hidden), the share of each pixel of T x that the brush covers
    T x without the part = T x + h ⊙ (mean colour of x - T x)
    covered = Σ h ⊙ I(T x)        against        logit(T x) - logit(T x without the part)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from torchsite.errors import NotApplicableError
from torchsite.metrics.carried import carry
from torchsite.metrics.grouping import calibrated
from torchsite.metrics.patch_deletion import PatchDeletion
from torchsite.model import SITE, Explanation
from torchsite.shapes import Heatmaps, Images, Logits
from torchsite.transforms.affine import AffineTransform
from torchsite.web.library import OWN, Library, Served
from torchsite.web.schemas import Brushed, Scores

Explainer = tuple[str, str]  # method and model
MOVED = 1  # the row of T x in a result


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
    pictures: bool = True


@dataclass(frozen=True, eq=False)
class MapPair:
    """I(T x), T(I x), and how alike they are."""

    renewed: Tensor
    carried: Tensor
    scores: Scores


@dataclass(frozen=True, eq=False)
class JobResult:
    """The result of one job; rows 0 and 1 of images, logits and explanation are x and T x."""

    job: Job
    images: Images
    logits: Logits
    label: int
    explanation: Explanation | None
    pairs: dict[Explainer, MapPair]
    skipped: dict[Explainer, str]

    @property
    def covered(self) -> Tensor | None:
        """The share of each pixel of T x that the brush covers."""
        hidden = self.job.hidden
        return None if hidden is None else self.job.transform(hidden[None].to(self.images))[0]

    @property
    def hidden_share(self) -> float:
        """The share of the visible picture that is hidden."""
        if self.covered is None:
            return 0.0
        seen = self.job.transform(torch.ones_like(self.covered)[None])
        return float(self.covered.sum() / seen.sum().clamp_min(1e-9))

    def without(self, covered: Tensor) -> Tensor:
        """T x with the covered part in the mean colour of x."""
        still, moved = self.images
        return moved + covered * (still.mean((-2, -1), keepdim=True) - moved)


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
    images = torch.cat([still, _moved(still, transform, jobs)])
    logits, whole = _asked(served, images)
    labels = logits[:n].argmax(1)
    for i, job in enumerate(jobs):
        if job.label is not None:
            labels[i] = job.label
    results = [
        JobResult(
            job, images[[i, n + i]], logits[[i, n + i]], int(labels[i]), _rows(whole, [i, n + i]), {}, {}
        )
        for i, job in enumerate(jobs)
    ]
    for explainer in dict.fromkeys(e for job in jobs for e in job.explainers):
        method, owner = explainer[0], library[explainer[1]]
        rows = [i for i, job in enumerate(jobs) if explainer in job.explainers]
        both, classes = [*rows, *(n + i for i in rows)], labels[rows].repeat(2)
        try:
            if method == OWN and owner is served and (own := _rows(whole, both)):
                maps: Heatmaps = own.heatmaps(classes=classes)
            else:
                maps = owner.explainer(method)(images[both], classes)
        except NotApplicableError as error:
            for i in rows:
                results[i].skipped[explainer] = str(error)
            continue
        for i, pair in zip(
            rows, _pairs(owner, method, maps, still[rows], transform[torch.tensor(rows)]), strict=True
        ):
            results[i].pairs[explainer] = _tested(owner, results[i], pair)
    return results


def _moved(still: Images, transform: AffineTransform, jobs: list[Job]) -> Images:
    """T x of every job, with the corners that it asked for."""
    moved = transform(still)
    for corners in {job.corners for job in jobs} - {"black"}:
        rows = [i for i, job in enumerate(jobs) if job.corners == corners]
        moved[rows] = transform[torch.tensor(rows)](still[rows], fill=corners)
    return moved


def _asked(served: Served, images: Images) -> tuple[Logits, Explanation | None]:
    if isinstance(served.model, SITE):
        explanation = served.model.explain(images)
        return explanation.logits, explanation
    with torch.no_grad():
        return served.model(images), None


def _pairs(
    served: Served, method: str, maps: Heatmaps, still: Images, transform: AffineTransform
) -> list[MapPair]:
    """Carry I(x), and the explanations of other pictures for the floor, and compare with I(T x)."""
    untouched, renewed = maps.chunk(2)
    others, explained = served.partners(method)
    both = carry(untouched, renewed, transform, explained.expand(len(still), *explained.shape))
    differ = (still[:, None] != others).flatten(2).any(2)
    raw, floor = both.raw, (both.mismatched * differ).sum(1) / differ.sum(1).clamp_min(1)
    columns = torch.stack([raw, floor, calibrated(raw, floor), both.centred], dim=1).tolist()
    names = ("raw", "floor", "calibrated", "centred")
    scores = [
        Scores.model_validate(dict(zip(names, row, strict=True)) if visible else {})
        for row, visible in zip(columns, both.visible.tolist(), strict=True)
    ]
    return [MapPair(*three) for three in zip(both.renewed, both.carried, scores, strict=True)]


@torch.no_grad()
def _tested(served: Served, result: JobResult, pair: MapPair) -> MapPair:
    """The pair, with what hiding patches or the brushed part does to the model, where that was asked."""
    tested: dict[str, float | Brushed] = {}
    moved = result.images[MOVED]
    if result.job.hiding:
        metric = PatchDeletion(lambda images, classes: pair.renewed[None], served.model, n_resamples=0)
        metric.update(moved[None], torch.tensor([result.label]))
        tested["hiding"] = float(metric.result().correlation.value)
    if (covered := result.covered) is not None:
        before, after = served.model(torch.stack([moved, result.without(covered)]))[:, result.label].tolist()
        values = pair.renewed.double()
        tested["brushed"] = Brushed(
            covered=float((values * covered).sum()),
            gained=float(values.clamp_min(0).sum()),
            total=float(values.sum()),
            before=before,
            after=after,
        )
    return replace(pair, scores=pair.scores.model_copy(update=tested))


def _rows(explanation: Explanation | None, rows: list[int]) -> Explanation | None:
    """The part of an explanation that belongs to some pictures."""
    if explanation is None:
        return None
    names = ("images", "features", "prototypes", "evidence")
    return replace(explanation, **{name: getattr(explanation, name)[rows] for name in names})
