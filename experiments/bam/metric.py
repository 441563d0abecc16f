"""BAM: does importance follow what matters to the model? (Yang and Kim, 2019; appendix of the paper.)

Objects pasted on scenes; f_obj is trained to name the object, f_scene the scene, on the same pictures.

    M   = heatmap's positive part, clipped at its 99th percentile, scaled to [0, 1]
    A   = mean of M in the object's region
    MCS = mean [A(f_obj, x) - A(f_scene, x)]                    the object matters only to f_obj
    IDR = mean 1[A(f_scene, scene only) > A(f_scene, x)]        a pasted object hides the scene
    IIR = mean 1[|A(s) - A(s + δ)| < 0.1 · A(s)]                a δ that changes nothing should look so

s is the scene without the object, δ a patch in the region which leaves f_scene's answer as it was
(`insignificant_patch` finds one). Each runs over the samples classified correctly in both conditions. Maps
that ignore the model get MCS 0. IDR and IIR are given with *mismatched floors*, the same comparison between
different pictures: a constant map has IDR 0 and IIR 1 without knowing anything.
"""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from torchsite.errors import NotApplicableError
from torchsite.metrics.estimate import Estimate, estimates, ratio
from torchsite.metrics.explainer import Explainer, as_explainer
from torchsite.metrics.measure import Batch, Bootstrapped, Passes, Statistics, Sums
from torchsite.modes import evaluating
from torchsite.randomness import Rng
from torchsite.shapes import Heatmaps, Images, Labels, Masks, Scores

CLIP = 0.99
CLOSE = 0.1


class BAMResult(NamedTuple):
    """Model contrast score, input dependence rate, input independence rate, and the floors of the rates."""

    mcs: Estimate
    idr: Estimate
    idr_floor: Estimate
    iir: Estimate
    iir_floor: Estimate


def region_importance(heatmaps: Heatmaps, regions: Masks) -> Scores:
    """A: the mean of the clipped and scaled positive part over the region; 0 for a map without any."""
    positive = heatmaps.double().clamp_min(0).flatten(1)
    ceiling = positive.quantile(CLIP, dim=1, keepdim=True)
    ceiling = torch.where(ceiling > 0, ceiling, positive.amax(1, keepdim=True))
    scaled = positive.minimum(ceiling) / torch.where(ceiling > 0, ceiling, 1.0)
    inside = regions.flatten(1).double()
    return (scaled * inside).sum(1) / inside.sum(1).clamp_min(1)


def insignificant_patch(
    model: nn.Module, images: Images, regions: Masks, *, rng: Rng, strength: float = 0.3, n_steps: int = 50
) -> Images:
    """The images with a visible patch in the region that leaves the logits nearly as they were.

    A random δ of root mean square `strength` within the region descends ‖f(x + δ) - f(x)‖², projected back
    to its strength after each step; the picture is clamped to [0, 1].
    """
    inside = regions[:, None].to(images)
    noise = torch.randn(images.shape, generator=rng).to(images)
    with evaluating(model), torch.enable_grad():
        wanted = model(images).detach()
        delta = _of_strength(noise * inside, inside, strength)
        for _ in range(n_steps):
            delta = delta.detach().requires_grad_(True)
            change = (model((images + delta).clamp(0, 1)) - wanted).square().sum()
            (slope,) = torch.autograd.grad(change, delta)
            steepest = slope.abs().amax((1, 2, 3), keepdim=True)
            step = slope / torch.where(steepest > 0, steepest, 1.0)
            delta = _of_strength((delta - strength / 10 * step) * inside, inside, strength)
    return (images + delta.detach()).clamp(0, 1)


class OfBoth(Bootstrapped):
    """A measure of one kind of explanation on a model of objects and a model of scenes.

    It is fed with pictures and their parts, unlike the measures of METRICS.
    """

    shape: ClassVar[tuple[int, int]]
    asks: ClassVar[int]  # maps, and as many answers, for each picture

    def __init__(self, explain_object: Any, explain_scene: Any, **options: Any) -> None:
        super().__init__(**options)
        self._borrowed = (as_explainer(explain_object), as_explainer(explain_scene))
        for explainer in self._borrowed:
            explainer.require_model()
        self._add_sums(*self.shape)

    def passes(self) -> Passes:
        """As many maps as answers."""
        return Passes(self.asks, self.asks)

    def update(
        self,
        images: Images,
        objects: Labels,
        scenes: Labels,
        regions: Masks,
        scene_images: Images,
        perturbed_scenes: Images | None = None,
        indices: Int64[Tensor, " batch"] | None = None,
    ) -> None:
        """Add pictures with an object, their two labels, the object's regions, the same scenes without it
        and, for IIR, these scenes with an insignificant patch in the region."""
        indices = self._next_indices(len(images)) if indices is None else indices
        batch = Batch(images, objects, scenes, indices.cpu(), regions.to(images))
        self._add(self._statistics(batch, regions, scene_images, perturbed_scenes), batch.indices)

    def forward(self, *args: Any, **options: Any) -> Any:
        """Not offered: pairs are only accumulated."""
        raise NotApplicableError(
            f"{type(self).__name__} compares pairs: call update(…) for each, then compute()"
        )

    @abstractmethod
    def _statistics(self, batch: Batch, regions: Masks, bare: Images, perturbed: Images | None) -> Statistics:
        """What each picture adds to the sums."""


def named(explainer: Explainer, images: Images, classes: Labels) -> Bool[Tensor, " batch"]:
    """Whether pictures are classified as these classes."""
    right: Tensor = explainer.predict(images) == classes
    return right


class BAM(OfBoth):
    """MCS, IDR and IIR: both models on the picture, that of scenes also on the scene, bare and patched."""

    headline = ("mcs", "idr", "iir")
    shape, asks = (5, 2), 4

    def _statistics(self, batch: Batch, masks: Masks, bare: Images, perturbed: Images | None) -> Statistics:
        """(batch, 5, 2): whether each pair counts and what it scores, for the five figures."""
        of_object, of_scene = self._borrowed
        by_object, object_right = _look(of_object, batch.images, batch.labels, masks)
        by_scene, scene_right = _look(of_scene, batch.images, batch.classes, masks)
        alone, alone_right = _look(of_scene, bare, batch.classes, masks)
        shown = scene_right & alone_right
        columns = [
            (object_right & scene_right, by_object - by_scene),
            (shown, alone > by_scene),
            _mismatched(shown, alone, by_scene, torch.gt),
        ]
        if perturbed is None:
            columns += [(torch.zeros_like(alone_right), alone)] * 2
        else:
            patched, patched_right = _look(of_scene, perturbed, batch.classes, masks)
            kept = alone_right & patched_right
            columns += [(kept, _close(alone, patched)), _mismatched(kept, alone, patched, _close)]
        pairs = [torch.stack([counts.double(), score.double() * counts], dim=1) for counts, score in columns]
        return torch.stack(pairs, dim=1).cpu()

    def _compute(self, sums: Sums) -> BAMResult:
        return BAMResult(*estimates(ratio(sums[..., 1], sums[..., 0])))


def _look(
    explainer: Explainer, images: Images, classes: Labels, masks: Masks
) -> tuple[Scores, Bool[Tensor, " batch"]]:
    """A, and whether the picture was classified correctly."""
    right = named(explainer, images, classes)
    return region_importance(explainer(images, classes), masks), right


def _close(first: Scores, second: Scores) -> Tensor:
    return (first - second).abs() < CLOSE * first


def _mismatched(counts: Tensor, first: Scores, second: Scores, compare: Any) -> tuple[Tensor, Tensor]:
    """The comparison between a picture and the next one of the batch."""
    paired = counts & counts.roll(-1) & (len(counts) > 1)
    return paired, compare(first, second.roll(-1))


def _of_strength(delta: Images, inside: Images, strength: float) -> Float[Tensor, "batch channels rows cols"]:
    """δ scaled to the root mean square `strength` over its region."""
    n = (inside.sum((1, 2, 3), keepdim=True) * delta.shape[1]).clamp_min(1)
    size = (delta.square().sum((1, 2, 3), keepdim=True) / n).sqrt()
    return delta * (strength / torch.where(size > 0, size, 1.0))
