"""The result for one question, from one pass through the network: the batch is x and T x.

    raw     = cos(m ⊙ T(I x), m ⊙ I(T x))
    floor   = mean over samples x′ ≠ x of cos(m ⊙ T(I x′), m ⊙ I(T x))

m is 1 where T shows the picture. The definitions are those of `torchsite.metrics`. A brush hides a part of x,
which is patch deletion for one part of any shape:

    h       = T(hidden), the share of each pixel of T x that the brush covers
    T x without the part = T x + h ⊙ (mean colour of x - T x)
    covered = Σ h ⊙ I(T x)        against        logit(T x) - logit(T x without the part)
"""

from dataclasses import dataclass

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


def answer(library: Library, job: Job) -> JobResult:
    """Explain x and T x with every explainer of the job; those that do not apply are named in `skipped`."""
    served, still = library[job.model], job.picture[None]
    images = torch.cat([still, job.transform(still, fill=job.corners)])
    explanation = served.model.explain(images) if isinstance(served.model, SITE) else None
    with torch.no_grad():
        logits = served.model(images) if explanation is None else explanation.logits
    label = int(logits[0].argmax()) if job.label is None else job.label
    result = JobResult(job, images, logits, label, explanation, {}, {})
    for method, name in job.explainers:
        owner, classes = library[name], torch.tensor([label, label])
        try:
            if explanation is not None and (method, owner) == (OWN, served):
                maps: Heatmaps = explanation.heatmaps(classes=classes)
            else:
                maps = owner.explainer(method)(images, classes)
        except NotApplicableError as error:
            result.skipped[method, name] = str(error)
        else:
            result.pairs[method, name] = _pair(owner, method, maps, result)
    return result


@torch.no_grad()
def _pair(owner: Served, method: str, maps: Heatmaps, result: JobResult) -> MapPair:
    """Carry I(x), and the explanations of other pictures for the floor, and compare with I(T x)."""
    others, explained = owner.partners(method)
    both = carry(maps[:1], maps[1:], result.job.transform, explained[None])
    differ = (result.images[0] != others).flatten(1).any(1)
    raw, floor = both.raw, (both.mismatched * differ).sum(1) / differ.sum().clamp_min(1)
    scores: dict[str, float | Brushed] = {}
    if bool(both.visible):
        names = ("raw", "floor", "calibrated", "centred")
        values = (raw, floor, calibrated(raw, floor), both.centred)
        scores = {name: float(value) for name, value in zip(names, values, strict=True)}
    scores |= _tested(owner, result, both.renewed[0])
    return MapPair(both.renewed[0], both.carried[0], Scores.model_validate(scores))


def _tested(owner: Served, result: JobResult, renewed: Tensor) -> dict[str, float | Brushed]:
    """The effect of hiding patches or the brushed part, if requested."""
    tested: dict[str, float | Brushed] = {}
    moved = result.images[MOVED]
    if result.job.hiding:
        metric = PatchDeletion(lambda images, classes: renewed[None], owner.model, n_resamples=0)
        metric.update(moved[None], torch.tensor([result.label]))
        tested["hiding"] = float(metric.result().correlation.value)
    if (covered := result.covered) is not None:
        before, after = owner.model(torch.stack([moved, result.without(covered)]))[:, result.label].tolist()
        values = renewed.double()
        tested["brushed"] = Brushed(
            covered=float((values * covered).sum()),
            gained=float(values.clamp_min(0).sum()),
            total=float(values.sum()),
            before=before,
            after=after,
        )
    return tested
