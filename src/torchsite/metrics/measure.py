"""What every measure shares: `_update(batch) → statistics`, sums of them, `_compute(sums) → result`.

A measure is a torchmetrics `Metric` with one state of sums: row 0 the sum over all images, the other rows the
same sum over the bootstrap's resamples. The two functions that differ between measures are pure: `_update`
turns a batch into per-image statistics, `_compute` turns sums into the result, for all rows at once.
"""

import abc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor, distributed, nn
from torchmetrics import Metric

from torchsite.data import ImagesLike
from torchsite.errors import ConfigError, NotApplicableError, ShapeError
from torchsite.metrics.estimate import N_RESAMPLES, resample_weights, scores_of
from torchsite.metrics.explainer import Explainer, as_explainer, pictures_for
from torchsite.metrics.grouping import partner_offset
from torchsite.metrics.poses import Poses
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Heatmaps, Images, Labels
from torchsite.transforms import Transform

Statistics = Float[Tensor, "batch *statistics"]
Sums = Float[Tensor, "resamples *statistics"]


@dataclass(frozen=True, eq=False)
class Batch:
    """The input of a measure: pictures, true classes, classes to explain, indices; regions if given.

    `regions` are the objects', `padded` are pictures of which `images` are the centre crops.
    """

    images: Images
    labels: Labels
    classes: Labels
    indices: Int64[Tensor, " batch"]
    regions: Heatmaps | None = None
    padded: Images | None = None

    def __post_init__(self) -> None:
        if self.images.ndim != 4 or not self.images.is_floating_point():
            raise ShapeError(
                f"expected float images in [0, 1] of shape (batch, channels, height, width), "
                f"got {self.images.dtype} of shape {tuple(self.images.shape)}"
            )
        for name in ("labels", "classes", "indices"):
            self._check_integers(name, getattr(self, name))
        size = (len(self.images), *self.images.shape[-2:])
        if self.regions is not None and tuple(self.regions.shape) != size:
            raise ShapeError(f"regions: expected shape {size}, got {tuple(self.regions.shape)}")
        if self.padded is not None and self.padded.shape[:2] != self.images.shape[:2]:
            raise ShapeError(f"padded: expected one for each picture, got {tuple(self.padded.shape)}")

    def __len__(self) -> int:
        return len(self.images)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return (self.images.shape[-2], self.images.shape[-1])

    @property
    def known_regions(self) -> Heatmaps:
        """The regions, of a measure that needs them: `update` has checked it."""
        assert self.regions is not None
        return self.regions

    def moved(self, transform: Transform) -> "Batch":
        """The pictures and their regions, transformed."""
        regions = None if self.regions is None else transform(self.regions)
        return replace(self, images=transform(self.images), regions=regions)

    def _check_integers(self, name: str, values: Tensor) -> None:
        if values.dtype != torch.int64 or tuple(values.shape) != (len(self.images),):
            raise ShapeError(
                f"{name}: expected int64 of shape ({len(self.images)},), "
                f"got {values.dtype} of shape {tuple(values.shape)}"
            )


class Passes(NamedTuple):
    """How many maps of the explainer a measure needs for one picture, and how many outputs of the model.

    A larger picture counts for as many as its pixels are. Maps cost what the method costs.
    """

    maps: int
    answers: int


class Bootstrapped(Metric):
    """Sums over pictures, and over resamples of them, that become a result with intervals."""

    higher_is_better: bool | None = True
    is_differentiable = False
    full_state_update = False

    # The scores that tables show, by their dotted names; under "fills.*" those of every filling.
    headline: ClassVar[tuple[str, ...]] = ()

    sums: Tensor
    n_seen: Tensor

    def __init__(
        self, *, poses: Poses | None = None, n_resamples: int = N_RESAMPLES, **torchmetrics_options: Any
    ) -> None:
        super().__init__(**torchmetrics_options)
        self.poses = Poses() if poses is None else poses
        self.n_resamples = n_resamples
        if n_resamples < 0:
            raise ConfigError(f"expected counts, got n_resamples={n_resamples}")
        self.add_state("n_seen", torch.tensor(0), dist_reduce_fx="sum")

    def compute(self) -> dict[str, Tensor]:
        """The scores of `headline` as scalars, by the names of their places in `result()`."""
        found = scores_of(self._compute(self.sums), self.headline)
        return {name: torch.tensor(value, device=self.device) for name, value in found.items()}

    def result(self) -> Any:
        """Everything found over all that was seen, in all processes: floors, curves, and intervals."""
        with self.sync_context(
            self.dist_sync_fn, should_sync=self._to_sync, should_unsync=self._should_unsync
        ):
            return self._compute(self.sums)

    def passes(self) -> Passes | None:
        """Its passes for each picture, with these options; None if a measure does not count them."""
        return None

    @abc.abstractmethod
    def _compute(self, sums: Sums) -> Any:
        """The result, from sums over all images (row 0) and over resamples."""

    def _add_sums(self, *shape: int) -> None:
        """Declare how many statistics an image has."""
        zeros = torch.zeros(1 + self.n_resamples, *shape, dtype=torch.float64)
        self.add_state("sums", zeros, dist_reduce_fx="sum")

    def _add(self, statistics: Statistics, indices: Int64[Tensor, " batch"]) -> None:
        """Add the statistics of the pictures of these numbers."""
        weights = resample_weights(indices, self.n_resamples, self.poses.seed).to(self.sums)
        self.sums += (weights @ statistics.to(self.sums).flatten(1)).reshape(self.sums.shape)
        self.n_seen += len(indices)

    def _next_indices(self, n: int) -> Int64[Tensor, " batch"]:
        if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
            raise ShapeError(
                "in a distributed run a process cannot count the pictures of the others: pass `indices`, "
                "the numbers of the pictures in the data set"
            )
        return int(self.n_seen) + torch.arange(n)


class Measure(Bootstrapped):
    """The base of measures of explanations: hands batches to `_update` and sums to `_compute`.

    The class attributes are what tables need to know of a measure. `definition` is raised when a measure
    changes its meaning, so that files never mix the two.
    """

    of_model: ClassVar[bool] = False  # asks for no explanation
    of_prototypes: ClassVar[bool] = False  # asks for the prototypes of a model that explains itself
    shares_passes: ClassVar[bool] = False  # pictures as they are and in poses: in `evaluate`, passes shared
    probes: ClassVar[bool] = False  # altered pictures: in `evaluate`, on a part of the pictures
    definition: ClassVar[int] = 1
    needs_model: ClassVar[bool] = False  # asks the model for answers
    needs_classes: ClassVar[bool] = False  # figures for each class, so `n_classes` must be given
    needs_regions: ClassVar[bool] = False  # where the objects are, given to `update`
    needs_options: ClassVar[tuple[str, ...]] = ()
    shape: ClassVar[tuple[int, ...]] = ()  # of the statistics of a picture; () where it depends on options

    def __init__(
        self,
        explain: Any,
        model: nn.Module | None = None,
        *,
        n_classes: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._borrowed = (as_explainer(explain, model),)  # a tuple, lest the model become part of the state
        self.n_classes = n_classes
        if n_classes < 0:
            raise ConfigError(f"expected counts, got n_classes={n_classes}")
        if self.needs_classes and not n_classes:
            raise ConfigError("n_classes: there are figures for each class, so say how many there are")
        if self.needs_model:
            self.explainer.require_model()
        if self.of_prototypes and not hasattr(self.explainer.require_model(), "explain"):
            raise NotApplicableError(
                f"{type(self.explainer.model).__name__} has no .explain and hence no prototypes"
            )
        if self.shape:
            self._add_sums(*self.shape)

    @property
    def explainer(self) -> Explainer:
        """What is measured."""
        return self._borrowed[0]

    def update(
        self,
        images: ImagesLike,
        labels: Labels | Sequence[int],
        classes: Labels | None = None,
        indices: Int64[Tensor, " batch"] | None = None,
        regions: Heatmaps | None = None,
        padded: Images | None = None,
    ) -> None:
        """Add a batch. `classes` are those to explain (default: the labels), `indices` the pictures' numbers
        in the data set (default: counted on from 0), on which transforms and resamples depend."""
        images, labels = self._pictures(images), torch.as_tensor(labels)
        indices = self._next_indices(len(images)) if indices is None else indices
        classes = labels if classes is None else torch.as_tensor(classes)
        if regions is not None:
            regions = regions.to(images)
        elif self.needs_regions:
            raise NotApplicableError(
                f"{type(self).__name__} needs the objects' regions: pass `regions=` (for MNIST: "
                "`strokes(images)`; for boxes: `box_regions(…)`)"
            )
        batch = Batch(images, labels, classes, indices.cpu(), regions, padded)
        self._add(self._update(batch), batch.indices)

    def forward(self, images: ImagesLike, labels: Labels, *args: Any, **options: Any) -> Any:
        """Add a batch and return the result on this batch alone."""
        images = self._pictures(images)
        if len(args) < 2 and options.get("indices") is None:
            options["indices"] = self._next_indices(len(images))
        return super().forward(images, labels, *args, **options)

    def passes(self) -> Passes:
        """By default a map, or an output, of the picture as it is and in each pose."""
        n = 1 + self.poses.n
        return Passes(0, n) if self.of_model and not self.of_prototypes else Passes(n, 0)

    def _pictures(self, pictures: ImagesLike) -> Images:
        """Pictures in any form that `as_images` takes, files fitted to what the model sees."""
        return pictures_for(self.explainer.model, pictures)

    @abc.abstractmethod
    def _update(self, batch: Batch) -> Statistics:
        """The statistics of each image of a batch: what is summed."""

    def _transforms(self, batch: Batch) -> list[Transform]:
        """The poses of each image of the batch."""
        return [self.poses.of(batch.indices, k).to(batch.images.device) for k in range(self.poses.n)]

    def _paired(self, batch: Batch) -> Iterator[tuple[Transform, int]]:
        """Each pose, and the offset in the batch of the other picture of its floor."""
        for number, transform in enumerate(self._transforms(batch)):
            yield transform, partner_offset(number, self.poses.n, len(batch))

    def _still_and_moved(
        self, batch: Batch, score: Callable[[Batch], Statistics]
    ) -> Float[Tensor, "batch 2 *statistics"]:
        """The scores of the pictures as they are, and their mean over the poses."""
        moved = [score(batch.moved(transform)) for transform in self._transforms(batch)]
        return torch.stack([score(batch), torch.stack(moved).mean(0)], dim=1)

    def _rng(self, batch: Batch, *stream: str | int) -> Rng:
        """Random numbers of a batch: they depend on the seed, its first picture and the purpose."""
        first = int(batch.indices[0]) if len(batch) else 0
        return make_rng(self.poses.seed, "batch", first, *stream)
