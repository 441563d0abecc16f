"""The training step of SITE and of the black box, as Lightning modules."""

import abc
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lightning as L
import torch
from torch import Tensor

from torchsite.data import Dataset, to_float
from torchsite.errors import TrainingError
from torchsite.metrics import self_consistency
from torchsite.model import SITE, BlackBox
from torchsite.objective import classification_loss, equivariance_loss, to_unit, transformation_loss
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Images, Labels, Prototypes, Scalar
from torchsite.training.config import TrainingConfig
from torchsite.training.exemplars import make_targets
from torchsite.training.loader import Parts, RowLoader, Rows
from torchsite.training.optimisers import make_optimisers, schedule
from torchsite.training.progress import set_progress
from torchsite.transforms import Transform

LN2 = math.log(2)


@contextmanager
def seeded(seed: int, step: int, rank: int) -> Iterator[None]:
    """Torch's global random state for one step, then as it was: dropout in a module of the user's resumes."""
    with torch.random.fork_rng():
        torch.manual_seed(make_rng(seed, "step", step, rank).initial_seed())
        yield


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
        self.last_rows: Rows = torch.empty(0, dtype=torch.int64)

    @abc.abstractmethod
    def losses(self, images: Images, labels: Labels, rows: Rows) -> dict[str, Tensor]:
        """The parts of the loss and what is worth watching; `loss` is what is minimised."""

    @property
    def steps_done(self) -> int:
        """Optimiser steps so far; Lightning counts each of several optimisers."""
        return self.global_step // max(1, len(self.trainer.optimizers))

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in the data."""
        return len(self.data) // self.recipe.batch_size

    @property
    def n_steps(self) -> int:
        """Optimiser steps of the whole run."""
        return self.recipe.epochs * self.steps_per_epoch

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
            self.global_rank,
            self.trainer.world_size,
        )

    def configure_optimizers(self) -> Any:
        """The optimisers; `training_step` sets their learning rates."""
        return make_optimisers(self.model, self.recipe)

    def training_step(self, rows: Rows, batch_idx: int) -> None:
        """One step of every optimiser."""
        with seeded(self.recipe.seed, self.steps_done, self.global_rank):
            self._step(rows)

    def _step(self, rows: Rows) -> None:
        self.last_rows = rows
        images = to_float(self.data.images[rows.cpu()].to(self.device))
        labels = self.data.labels[rows.cpu()].to(self.device)
        parts = self.losses(images, labels, rows)
        self._check_finite(parts["loss"])
        optimisers = self.optimizers()
        optimisers = optimisers if isinstance(optimisers, list) else [optimisers]
        factor = schedule(self.recipe, self.n_steps)(self.steps_done)
        for optimiser in optimisers:
            optimiser.zero_grad()
        self.manual_backward(parts["loss"])
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = factor * group.setdefault("peak_lr", group["lr"])
            optimiser.step()
        self.log_dict({name: value.detach() for name, value in parts.items()}, prog_bar=True)
        self.log("learning rate", factor * self.recipe.learning_rate)
        if "transformation" in parts:
            self.log("transformation minus ln 2", parts["transformation"].detach() - LN2)

    def poses(self, n: int, purpose: str = "pose") -> Transform:
        """The random transforms of this step."""
        rng = make_rng(self.recipe.seed, purpose, self.steps_done, self.global_rank)
        return self.recipe.family.sample(n, rng=rng).to(self.device)

    def val_dataloader(self) -> Parts:
        """Parts of the validation slice."""
        return Parts(min(len(self.validation), self.recipe.n_validation), 250)

    def validation_step(self, rows: Rows, batch_idx: int) -> None:
        """Log the measures of one part of the validation slice, the same poses every time."""
        images = to_float(self.validation.images[rows.cpu()].to(self.device))
        labels = self.validation.labels[rows.cpu()].to(self.device)
        measures = self.measures(images, labels, make_rng(self.recipe.seed, "validation", batch_idx))
        named = {f"validation {name}": value for name, value in measures.items()}
        self.log_dict(named, on_epoch=True, batch_size=len(rows), sync_dist=True)

    def measures(self, images: Images, labels: Labels, rng: Rng) -> dict[str, float]:
        """Accuracy on pictures as they are and in random poses."""
        pose = self.recipe.family.sample(len(images), rng=rng).to(self.device)
        upright, posed = (self.model(pictures).argmax(1) == labels for pictures in (images, pose(images)))
        return {"accuracy": float(upright.float().mean()), "posed accuracy": float(posed.float().mean())}

    def _check_finite(self, loss: Scalar) -> None:
        if not torch.isfinite(loss):
            raise TrainingError(
                f"the loss became {loss.item()} at step {self.steps_done}, on the pictures numbered "
                f"{self.last_rows.tolist()}: lower the learning rate (now {self.recipe.learning_rate:g}) "
                f"or look at these pictures; the last good weights are kept in the run's folder"
            )


class SiteTraining(Training):
    """CE(logits(T x), y) + λ · L_trans (+ direct equivariance between two poses of each picture)."""

    model: SITE

    def __init__(self, model: SITE, data: Dataset, validation: Dataset, config: TrainingConfig) -> None:
        super().__init__(model, data, validation, config)
        self.targets = make_targets(model, data, config)

    def losses(self, images: Images, labels: Labels, rows: Rows) -> dict[str, Tensor]:
        """All parts of the objective for pictures in one random pose, or in two for the direct term."""
        config, n = self.recipe, len(images)
        poses = [self.poses(n, name) for name in self._pose_names()]
        run = self.model.run(torch.cat([pose(images) for pose in poses]))
        classification = classification_loss(run.logits, labels.repeat(len(poses)), config.label_smoothing)
        transformation = self._transformation_loss(run.raw_prototypes[:n], rows, poses[0])
        loss = classification + config.transformation_weight * transformation
        self.targets.learn(to_unit(run.features[:n].detach(), self.model.bce_slope), rows, labels, poses[0])
        parts = {
            "classification": classification,
            "transformation": transformation,
            "accuracy": (run.logits[:n].argmax(1) == labels).float().mean(),
            "|w|": run.prototypes.detach().abs().mean(),
            "|z|": run.features.detach().abs().mean(),
        }
        if config.equivariance_weight:
            first, second = run.evidence.chunk(2)
            equivariance = equivariance_loss(first, second, poses[1] @ poses[0].inverse())
            loss = loss + config.equivariance_weight * equivariance
            parts["equivariance"] = equivariance
        return {"loss": loss} | parts

    def _pose_names(self) -> list[str]:
        return ["pose", "second pose"] if self.recipe.equivariance_weight else ["pose"]

    def _transformation_loss(self, raw: Prototypes, rows: Rows, pose: Transform) -> Scalar:
        rng = make_rng(self.recipe.seed, "exemplars", self.steps_done, self.global_rank)
        targets = self.targets(rows, rng)
        return transformation_loss(raw, targets, pose, slope=self.model.bce_slope, warp=self.recipe.warp)

    def measures(self, images: Images, labels: Labels, rng: Rng) -> dict[str, float]:
        """Accuracy as for any classifier, and how well the explanation follows the picture."""
        classes = self.model(images).argmax(1)
        found = self_consistency(
            self.model, images, classes, family=self.recipe.family, n_transforms=1, rng=rng, n_resamples=2
        )
        figures = {name: getattr(found, name).value for name in ("raw", "floor", "calibrated", "centred")}
        return super().measures(images, labels, rng) | figures


class BlackBoxTraining(Training):
    """Cross-entropy under the same poses: the comparison with the same budget."""

    model: BlackBox

    def losses(self, images: Images, labels: Labels, rows: Rows) -> dict[str, Tensor]:
        """The classification loss of transformed pictures."""
        logits = self.model(self.poses(len(images))(images))
        loss = classification_loss(logits.float(), labels, self.recipe.label_smoothing)
        return {"loss": loss, "accuracy": (logits.argmax(1) == labels).float().mean()}
