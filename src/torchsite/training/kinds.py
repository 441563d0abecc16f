"""What is minimised: SITE's objective, and the black box's."""

import torch
import torch.nn.functional as F
from torch import Tensor

from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.metrics import self_consistency
from torchsite.model import SITE, BlackBox
from torchsite.objective import (
    calibrated,
    classification_loss,
    equivariance_losses,
    mismatched_similarity,
    to_unit,
    transformation_loss,
)
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Features, Images, Labels, Maps, Masks, Prototypes, Scalar, Size
from torchsite.training.batch import Batch
from torchsite.training.config import TrainingConfig
from torchsite.training.distributed import mean_with_gradients, n_ranks
from torchsite.training.masking import what_is_shown
from torchsite.training.module import Losses, Training
from torchsite.training.targets import make_targets


class SiteTraining(Training):
    """CE(logits(T x), y) + λ · L_trans (+ direct equivariance between two views of each picture)."""

    model: SITE

    def __init__(self, model: SITE, data: Dataset, validation: Dataset, config: TrainingConfig) -> None:
        super().__init__(model, data, validation, config)
        if config.relative_from is not None and not model.config.zero_sum:
            raise ConfigError("relative_from: expected a model that shows relative maps: set zero_sum")
        self.targets = make_targets(model, data, config)
        self.run = torch.compile(model.run) if config.compile else model.run

    def losses(self, batch: Batch) -> Losses:
        """All parts of the objective, in every view of the pictures."""
        config, n, poses = self.recipe, len(batch), batch.poses
        run = self.run(batch.views())
        labels = batch.labels.repeat(len(poses))
        classification = classification_loss(run.logits, labels, config.label_smoothing)
        transformation = self._transformation_loss(run.raw_prototypes, batch)
        loss = classification + config.transformation_weight * transformation
        parts = {
            "classification": classification,
            "transformation": transformation,
            "accuracy": (run.logits[:n].argmax(1) == batch.labels).float().mean(),
            "|w|": run.prototypes.detach().abs().mean(),
            "|z|": run.features.detach().abs().mean(),
        }
        if config.equivariance_weight:
            relative = self._relative()
            evidence = (run.relative() if relative else run).evidence
            found = self._equivariance(evidence, batch, "cosine" if relative else config.equivariance)
            loss = loss + config.equivariance_weight * found["equivariance"]
            parts |= found
        return Losses({"loss": loss} | parts, run.features[:n].detach())

    def _relative(self) -> bool:
        """Whether the direct term is by now the cosine of maps relative to all classes.

        These are what a `zero_sum` model shows. Much of them is positive wherever the picture speaks for its
        class, and so they are alike: to ask for a low floor would ask them not to be true.
        """
        begins = self.recipe.relative_from
        return begins is not None and self.steps_done >= begins * self.n_steps

    def shown(self, size: Size) -> Masks | None:
        """All but a rectangle of each picture, if the recipe hides one."""
        if self.recipe.hidden is None:
            return None
        n, rng = self.recipe.batch_size, make_rng(self.recipe.seed, "hidden", self.steps_done, 0)
        return what_is_shown(n, size, self.recipe.hidden, rng)[self.share.rows(n)].to(self.device)

    def learn(self, batch: Batch, features: Features) -> None:
        """The targets remember the features of the step."""
        self.targets.learn(to_unit(features, self.model.bce_slope), batch.rows, batch.labels, batch.poses[0])

    def _equivariance(self, evidence: Maps, batch: Batch, form: str) -> dict[str, Tensor]:
        """The direct term between the two views: one half for all classes, one for the picture's own.

        Its own map is the one that is looked at and measured, and the hardest to keep; as one of many in a
        mean it would hardly count. The floor is that of all pictures of the step. With the recipe's `hidden`,
        what the second view does not show must give no evidence there.
        """
        (first, second), (before, after) = evidence.chunk(2), batch.poses
        shown = (
            None
            if batch.shown is None
            else F.adaptive_avg_pool2d(batch.shown.to(first), (first.shape[-2], first.shape[-1]))
        )
        motion, own = after @ before.inverse(), (torch.arange(len(first)), batch.labels)
        losses = equivariance_losses(first, second, motion, centred=form == "centred", shown=shown)
        loss = (losses.mean() + losses[own].mean()) / 2
        if self.recipe.equivariance != "calibrated":
            return {"equivariance": loss}
        floor = mismatched_similarity(first[own], n_parts=n_ranks(), mean_of_parts=mean_with_gradients)
        term = calibrated(mean_with_gradients(loss), floor) if form == "calibrated" else loss
        return {"equivariance": term, "floor": floor}

    def _transformation_loss(self, raw: Prototypes, batch: Batch) -> Scalar:
        """The mean over the views: a prototype judged in one pose alone need show nothing in the others."""
        rng = make_rng(self.recipe.seed, "exemplars", self.steps_done, 0)
        targets, warp = self.targets(batch.rows, rng, batch.share), self.recipe.warp
        coverages = batch.coverages((raw.shape[-2], raw.shape[-1]), inverse=warp == "prototype")
        views = zip(raw.chunk(len(batch.poses)), batch.poses, coverages, strict=True)
        losses = [
            transformation_loss(prototypes, targets, pose, slope=self.model.bce_slope, warp=warp) * coverage
            for prototypes, pose, coverage in views
        ]
        return torch.stack(losses).mean()

    def measures(self, images: Images, labels: Labels, rng: Rng) -> dict[str, float]:
        """Accuracy as for any classifier, and how well the explanation follows the picture."""
        classes = self.model(images).argmax(1)
        found = self_consistency(
            self.model, images, classes, family=self.recipe.family, n_transforms=1, rng=rng, n_resamples=2
        )
        figures = {name: getattr(found, name).value for name in ("raw", "floor", "calibrated", "centred")}
        return super().measures(images, labels, rng) | figures


class BlackBoxTraining(Training):
    """Cross-entropy under the same poses: the comparison with the same budget.

    What `hidden` asks of SITE's evidence cannot be asked here: the black box sees its views whole.
    """

    model: BlackBox

    def __init__(self, model: BlackBox, data: Dataset, validation: Dataset, config: TrainingConfig) -> None:
        super().__init__(model, data, validation, config)
        self.run = torch.compile(model.forward) if config.compile else model.forward

    def losses(self, batch: Batch) -> Losses:
        """The classification loss in the poses that SITE would see."""
        logits = self.run(batch.views())
        labels = batch.labels.repeat(len(batch.poses))
        loss = classification_loss(logits.float(), labels, self.recipe.label_smoothing)
        return Losses({"loss": loss, "accuracy": (logits.argmax(1) == labels).float().mean()})
