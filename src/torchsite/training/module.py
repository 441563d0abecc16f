"""The training step that all models share, as a Lightning module; `kinds` says what each minimises."""

import abc
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import lightning as L
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from torchsite.data import Dataset, to_float
from torchsite.errors import TrainingError
from torchsite.model import SITE, BlackBox
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Features, Images, Labels, Masks, Scalar, Size
from torchsite.training.batch import Batch
from torchsite.training.config import TrainingConfig
from torchsite.training.distributed import (
    mean_over_ranks,
    notes_of_all_ranks,
    rows_of_all_ranks,
)
from torchsite.training.loader import Parts, RowLoader, Rows, Share
from torchsite.training.optimisers import make_optimisers, schedule
from torchsite.training.progress import set_progress
from torchsite.training.sharding import ShardedStrategy, shard
from torchsite.transforms import AffineTransform, Transform

LN2 = math.log(2)
VALIDATION_PART = 250


@contextmanager
def seeded(seed: int, step: int, rank: int) -> Iterator[None]:
    """Torch's global random state for one step, then as it was: dropout in a module of the user's resumes."""
    with torch.random.fork_rng():
        torch.manual_seed(make_rng(seed, "step", step, rank).initial_seed())
        yield


@dataclass(frozen=True, eq=False)
class Losses:
    """`parts["loss"]` is what is minimised, the rest is worth watching; `features` are learnt from."""

    parts: dict[str, Tensor]
    features: Features | None = None


class Training(L.LightningModule, abc.ABC):
    """What both kinds share: batches by row number, poses by step, several optimisers, one schedule."""

    model: SITE | BlackBox

    def __init__(
        self, model: SITE | BlackBox, data: Dataset, validation: Dataset, config: TrainingConfig
    ) -> None:
        super().__init__()
        self.model = model
        self.recipe = config
        self.data, self.validation = data, validation
        self.automatic_optimization = False
        self.measured: list[tuple[int, int, dict[str, float]]] = []

    @abc.abstractmethod
    def losses(self, batch: Batch) -> Losses:
        """The loss of a batch and what is worth watching."""

    def learn(self, batch: Batch, features: Features) -> None:
        """Take note of the features of a whole step."""
        del batch, features

    @property
    def steps_done(self) -> int:
        """Optimiser steps so far; Lightning counts each of several optimisers."""
        return self.global_step // max(1, len(self.trainer.optimizers))

    @property
    def share(self) -> Share:
        """Which rows of every global batch, and which parts of the validation, are this process's."""
        return Share(self.global_rank, self.trainer.world_size)

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in the data."""
        return len(self.data) // self.recipe.batch_size

    @property
    def n_steps(self) -> int:
        """Optimiser steps of the whole run."""
        return self.recipe.epochs * self.steps_per_epoch

    def setup(self, stage: str) -> None:
        """Ranks need not send each other buffers: all compute the same, and the targets' may be large."""
        self._ddp_params_and_buffers_to_ignore = [name for name, _ in self.named_buffers()]

    def configure_model(self) -> None:
        """With FSDP, divide the parameters among the processes before the optimisers see them."""
        if isinstance(self.trainer.strategy, ShardedStrategy):
            shard(self.model, self.trainer.strategy.device_mesh["data_parallel"])

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on as if never interrupted; Lightning's own counts drift from one resumption to the next."""
        steps = checkpoint["global_step"] // len(checkpoint["optimizer_states"])
        set_progress(checkpoint["loops"]["fit_loop"], steps, self.steps_per_epoch)

    def train_dataloader(self) -> RowLoader:
        """Row numbers; pictures are looked up in the whole tensor."""
        return RowLoader(
            len(self.data),
            self.recipe.batch_size,
            self.recipe.seed,
            lambda: self.steps_done,
            self.share.rank,
            self.share.ranks,
            self.recipe.accumulate,
        )

    def configure_optimizers(self) -> Any:
        """The optimisers; `training_step` sets their learning rates."""
        return make_optimisers(self.model, self.recipe)

    def training_step(self, rows: Rows, batch_idx: int) -> None:
        """One step of every optimiser."""
        with seeded(self.recipe.seed, self.steps_done, self.global_rank):
            self._step(rows)

    def _step(self, rows: Rows) -> None:
        batch, n_parts = self._batch(rows), self.recipe.accumulate
        optimisers = self.optimizers()
        optimisers = optimisers if isinstance(optimisers, list) else [optimisers]
        factor = schedule(self.recipe, self.n_steps)(self.steps_done)
        for optimiser in optimisers:
            optimiser.zero_grad()
        found = [
            self._backward(part, last=number == n_parts)
            for number, part in enumerate(batch.parts(n_parts), start=1)
        ]
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = factor * group.setdefault("peak_lr", group["lr"])
            optimiser.step()
        features = [part.features for part in found if part.features is not None]
        if features:
            self.learn(batch, torch.cat(features))
        self._log({name: torch.stack([part.parts[name] for part in found]).mean() for name in found[0].parts})
        self.log("learning rate", factor * self.recipe.learning_rate)

    def _batch(self, rows: Rows) -> Batch:
        images = to_float(self.data.images[rows.cpu()].to(self.device))
        labels = self.data.labels[rows.cpu()].to(self.device)
        shown = self.shown((images.shape[-2], images.shape[-1]))
        return Batch(rows, self._flipped(images), labels, self.share, self.views(), shown)

    def shown(self, size: Size) -> Masks | None:
        """What is seen of the last view of this process's pictures; None: all of it."""
        del size
        return None

    def _flipped(self, images: Images) -> Images:
        """A random half of the pictures mirrored, if the recipe asks for it."""
        if not self.recipe.flip:
            return images
        n, rng = self.recipe.batch_size, make_rng(self.recipe.seed, "flip", self.steps_done, 0)
        mirror = (torch.rand(n, generator=rng) < 0.5)[self.share.rows(n)].to(images.device)
        return torch.where(mirror[:, None, None, None], images.flip(-1), images)

    def _backward(self, part: Batch, *, last: bool) -> Losses:
        """Add the gradients of one part to those before; with the last one, ranks exchange them."""
        found = self.losses(part)
        means = mean_over_ranks(torch.stack([value.detach().float() for value in found.parts.values()]))
        shared = dict(zip(found.parts, means, strict=True))
        self._check_finite(shared["loss"], found.parts["loss"], part.rows)
        model = self.trainer.strategy.model
        with nullcontext() if last or not isinstance(model, DistributedDataParallel) else model.no_sync():
            self.manual_backward(found.parts["loss"] / self.recipe.accumulate)
        return Losses(shared, found.features)

    def _log(self, parts: Mapping[str, Tensor]) -> None:
        self.log_dict(parts, prog_bar=True)
        if "transformation" in parts:
            self.log("transformation minus ln 2", parts["transformation"] - LN2)

    def views(self) -> tuple[Transform, ...]:
        """The poses in which each picture of the global batch stands in it."""
        posed = self.poses()
        if self.recipe.views == "two_posed":
            return self.poses("second pose"), posed
        if self.recipe.views == "upright_and_posed":
            return AffineTransform.identity(self.recipe.batch_size).to(self.device), posed
        return (posed,)

    def poses(self, purpose: str = "pose") -> Transform:
        """The random transforms of the global batch of this step: one stream (0) for all ranks."""
        rng = make_rng(self.recipe.seed, purpose, self.steps_done, 0)
        return self.recipe.family.sample(self.recipe.batch_size, rng=rng).to(self.device)

    def on_train_start(self) -> None:
        """All ranks must go on from one place; a file system that lags could show them different ones."""
        places = sorted(set(notes_of_all_ranks(self.steps_done)))
        if len(places) > 1:
            raise TrainingError(
                f"the processes found checkpoints of different steps ({places}): "
                f"their folder must be the same on all nodes; start again"
            )

    def val_dataloader(self) -> Parts:
        """This process's parts of the validation slice: every picture is looked at once."""
        n = min(len(self.validation), self.recipe.n_validation)
        return Parts(n, VALIDATION_PART, self.share)

    def on_validation_epoch_start(self) -> None:
        """Nothing measured yet."""
        self.measured = []

    def validation_step(self, rows: Rows, batch_idx: int) -> None:
        """Measure one part of the validation slice, in the same poses every time."""
        images = to_float(self.validation.images[rows.cpu()].to(self.device))
        labels = self.validation.labels[rows.cpu()].to(self.device)
        number = int(rows[0]) // VALIDATION_PART
        measures = self.measures(images, labels, make_rng(self.recipe.seed, "validation", number))
        self.measured.append((number, len(rows), measures))

    def on_validation_epoch_end(self) -> None:
        """Log the means over all pictures, whichever process looked at them."""
        parts = sorted(
            (part for parts in notes_of_all_ranks(self.measured) for part in parts), key=lambda part: part[0]
        )
        total = sum(n for _, n, _ in parts)
        means = {
            f"validation {name}": sum(n * measures[name] for _, n, measures in parts) / total
            for name in (parts[0][2] if parts else {})
        }
        self.log_dict(means, sync_dist=True)  # the same on every rank

    def measures(self, images: Images, labels: Labels, rng: Rng) -> dict[str, float]:
        """Accuracy on pictures as they are and in random poses."""
        pose = self.recipe.family.sample(len(images), rng=rng).to(self.device)
        upright, posed = (self.model(pictures).argmax(1) == labels for pictures in (images, pose(images)))
        return {"accuracy": float(upright.float().mean()), "posed accuracy": float(posed.float().mean())}

    def _check_finite(self, mean: Scalar, loss: Scalar, rows: Rows) -> None:
        """All ranks stop if the loss of one is no number, and name the pictures of those ranks."""
        if torch.isfinite(mean):
            return
        losses = rows_of_all_ranks(loss.detach().float().reshape(1))
        pictures = rows_of_all_ranks(rows.to(loss.device)).reshape(len(losses), -1)[~torch.isfinite(losses)]
        raise TrainingError(
            f"the loss became {mean.item()} at step {self.steps_done}, on the pictures numbered "
            f"{pictures.flatten().tolist()}: lower the learning rate (now {self.recipe.learning_rate:g}) "
            f"or look at these pictures; the last good weights are kept in the run's folder"
        )
