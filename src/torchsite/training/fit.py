"""`fit`: from a model and a data set to a trained model, a log and a result file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from lightning.fabric import Fabric

from torchsite.configs import to_mapping
from torchsite.data import Dataset
from torchsite.distributed import notes_of_all_ranks
from torchsite.errors import ConfigError, DataError
from torchsite.model import SITE, ImageClassifier
from torchsite.model.card import model_card, write_card
from torchsite.objective import BlackBoxObjective, Objective, SiteObjective
from torchsite.randomness import make_rng
from torchsite.results import Result
from torchsite.training.batches import check_batches
from torchsite.training.batchnorm import global_statistics
from torchsite.training.budget import training_budget
from torchsite.training.callback import Callback
from torchsite.training.checkpoints import checkpoints, last_checkpoint
from torchsite.training.collapse import LastGood
from torchsite.training.config import TrainingConfig
from torchsite.training.launch import launch
from torchsite.training.log import ProgressBar, TrainingLog
from torchsite.training.loop import Run, check_one_place, tell, train
from torchsite.training.optimisers import make_optimisers
from torchsite.training.precision import Precision, choose_precision
from torchsite.training.run_folder import RUN_FILE, check_run, describe_run, locked, write_run

Model = TypeVar("Model", bound=ImageClassifier)


@dataclass(frozen=True)
class Fitted(Generic[Model]):
    """A trained model, what its last validation found and how long it took, and where everything is."""

    model: Model
    measures: dict[str, float]
    seconds: float
    folder: Path
    n_steps: int = 0
    validation_seconds: float = 0.0


def fit(
    model: Model,
    data: Dataset,
    config: TrainingConfig | None = None,
    *,
    folder: Path | str,
    validation: Dataset | None = None,
    resume: bool = False,
    progress: bool = False,
    callbacks: Sequence[Callback] = (),
    accelerator: str = "auto",
    devices: int | str = "auto",
    num_nodes: int = 1,
) -> Fitted[Model]:
    """Train `model` on `data`; weights, logs, checkpoints and the result file go to `folder`.

    With `resume`, a run that was interrupted goes on to the weights it would have reached; without, an
    old run in the same folder is an error. A folder in which another process trains is always an error.
    Without `validation`, a tenth of the data is held out. Under `torchrun`, or with several `devices` (and
    `num_nodes`), several processes share every batch and reach the weights that one would reach.
    """
    config, folder = config or TrainingConfig(), Path(folder)
    model.check_data(data)
    if isinstance(model, SITE):
        model.gallery = None  # of the weights as they were
    if validation is None:
        data, validation = hold_out(data, config.seed)
    _check_classes(data)
    fabric = launch(accelerator=accelerator, devices=devices, num_nodes=num_nodes)
    check_batches(len(data), config.batch_size, fabric.world_size, config.accumulate)
    with locked(folder):
        checkpoint, precision = _begin(folder, resume, describe_run(model, data, config), config, fabric)
        run = make_run(fabric, model, data, validation, config, precision, folder)
        run.callbacks = [*own_callbacks(run, progress), *callbacks]
        if checkpoint is not None:
            run.checkpoints.restore(run, checkpoint)
        check_one_place(run)
        with global_statistics(model), run.checkpoints.listening():
            tell(run, "started")
            try:
                train(run)
            finally:
                tell(run, "ended")
        model.cpu().eval()
        seconds = run.checkpoints.seconds_spent
        if fabric.is_global_zero:
            _save(run, seconds)
        fabric.barrier()
    return Fitted(model, run.measures, seconds, folder, run.steps_done, run.validation_seconds)


def _save(run: Run, seconds: float) -> None:
    """Write the model with its card, and the result file."""
    model, config, folder = run.model, run.config, run.folder
    model.save_pretrained(folder / "model")
    write_card(folder / "model", model_card(model.config, run.measures, run.data.name))
    settings = {
        "training": to_mapping(config),
        "model": to_mapping(model.config),
        "data": run.data.name,
        "precision": to_mapping(run.precision),
        "budget": to_mapping(training_budget(model, config, len(run.data), run.steps_done)),
    }
    Result("training", run.measures, settings, config.seed, seconds).save(folder / "result.json")


def _begin(
    folder: Path, resume: bool, description: Mapping[str, Any], config: TrainingConfig, fabric: Fabric
) -> tuple[Path | None, Precision]:
    """Claim the folder for a run, or find from which checkpoint and in which precision its run goes on."""
    begun_before = bool(checkpoints(folder / "checkpoints"))
    if begun_before and not resume:
        raise ConfigError(f"{folder} holds an earlier run: go on with resume=True, or name another folder")
    goes_on = resume and (begun_before or (folder / RUN_FILE).exists())
    begun = check_run(folder, description) if goes_on else choose_precision(config.precision, fabric.device)
    precision: Precision = notes_of_all_ranks(begun)[0]
    if fabric.is_global_zero and not goes_on:
        write_run(folder, {**description, "precision": to_mapping(precision)})
    return last_checkpoint(folder), precision


def hold_out(data: Dataset, seed: int, share: float = 0.1) -> tuple[Dataset, Dataset]:
    """Split off a random share for validation."""
    order = torch.randperm(len(data), generator=make_rng(seed))
    n = max(2, round(share * len(data)))
    return data[order[n:]], data[order[:n]]


def _check_classes(data: Dataset) -> None:
    """Without a picture a class has no prototype to learn."""
    empty = [name for name, n in zip(data.classes, data.counts, strict=True) if n == 0]
    if empty:
        raise DataError(
            f"{data.name}: no picture to train on for {', '.join(empty)}: leave these classes out"
        )


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
        folder=folder,
        config=config,
        precision=precision,
    )


def own_callbacks(run: Run, progress: bool) -> list[Callback]:
    """The callbacks of every run; only the first process writes a log and shows a bar."""
    callbacks: list[Callback] = [run.collapse, LastGood()]
    if run.fabric.is_global_zero:
        callbacks = [TrainingLog(), *callbacks, *([ProgressBar()] if progress else [])]
    return callbacks


def make_objective(model: ImageClassifier, data: Dataset, config: TrainingConfig) -> Objective:
    """What is minimised for this kind of model."""
    kind: Callable[..., Objective] = SiteObjective if isinstance(model, SITE) else BlackBoxObjective
    return kind(
        model,
        data,
        config.terms,
        views=config.own_views,
        corners=config.corners,
        label_smoothing=config.label_smoothing,
        class_weights=config.class_weights,
    )
