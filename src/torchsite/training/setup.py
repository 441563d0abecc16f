"""A run before its first step: objective, optimisers, and who looks on, set up on the devices of Fabric."""

from pathlib import Path
from typing import Any

from lightning.fabric import Fabric

from torchsite.data import Dataset
from torchsite.model import SITE, ImageClassifier
from torchsite.objective import BlackBoxObjective, Objective, SiteObjective
from torchsite.objective.classification import ClassWeights, balanced_weights, yes_weights
from torchsite.training.averaging import WeightAverage
from torchsite.training.callback import Callback
from torchsite.training.checkpoints import Checkpoints
from torchsite.training.collapse import CollapseCheck, LastGood
from torchsite.training.config import TrainingConfig
from torchsite.training.log import TrainingLog
from torchsite.training.loop import Run
from torchsite.training.optimisers import make_optimisers
from torchsite.training.precision import Precision
from torchsite.training.progress import ProgressBar

MOST_STEPS_UNLOGGED = 20


def make_run(
    fabric: Fabric,
    model: ImageClassifier,
    data: Dataset,
    validation: Dataset,
    config: TrainingConfig,
    precision: Precision,
    folder: Path,
) -> Run:
    """The run before its first step."""
    model.train()  # a loaded model comes ready to answer
    objective = make_objective(model, data, config)
    # Processes need not send each other buffers: all compute the same, and the memories' may be large.
    buffers = [name for name, _ in objective.named_buffers()]
    objective.__dict__["_ddp_params_and_buffers_to_ignore"] = buffers
    losses, *optimisers = fabric.setup(objective, *make_optimisers(model, config))
    return Run(
        fabric=fabric,
        objective=objective,
        losses=losses,
        optimisers=optimisers,
        model=model,
        data=data,
        validation=validation,
        config=config,
        precision=precision,
        checkpoints=Checkpoints(folder, config.checkpoint_seconds),
        average=WeightAverage(model, config.ema_decay),
        collapse=CollapseCheck(config.collapse_patience),
    )


def own_callbacks(run: Run, folder: Path, log_every: int | None, progress: bool) -> list[Callback]:
    """Who looks on at every run; only the first process writes and shows."""
    callbacks: list[Callback] = [run.collapse, LastGood(folder)]
    if run.fabric.is_global_zero:
        every = log_every or max(1, min(MOST_STEPS_UNLOGGED, run.steps_per_epoch))
        callbacks.insert(0, TrainingLog(folder / "logs", every))
        callbacks += [ProgressBar()] if progress else []
    return callbacks


def make_objective(model: ImageClassifier, data: Dataset, config: TrainingConfig) -> Objective:
    """What is minimised for this kind of model."""
    options: dict[str, Any] = {
        "views": config.own_views,
        "corners": config.corners,
        "label_smoothing": config.label_smoothing,
        "class_weights": class_weights(data) if config.class_weights == "balanced" else None,
        "marks": data.marks,
    }
    if isinstance(model, SITE):
        return SiteObjective(model, data, config.terms, **options)
    return BlackBoxObjective(model, config.terms, **options)


def class_weights(data: Dataset) -> ClassWeights:
    """What makes rare classes count as much as others."""
    return balanced_weights(data.counts) if data.marks is None else yes_weights(data.marks)
