"""`fit`: from a model and a data set to a trained model, a log and a result file."""

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import lightning as L
import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import Callback, RichProgressBar
from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy

from torchsite.configs import to_mapping
from torchsite.data import Dataset
from torchsite.errors import ConfigError, DataError
from torchsite.model import SITE, BlackBox
from torchsite.model.config import class_names
from torchsite.randomness import make_rng
from torchsite.results import Result
from torchsite.training.averaging import WeightAverage
from torchsite.training.batchnorm import GlobalStatistics
from torchsite.training.callbacks import (
    Checkpoints,
    CollapseWatch,
    LastGood,
    checkpoints,
    last_checkpoint,
)
from torchsite.training.config import TrainingConfig
from torchsite.training.distributed import is_first, launch_options, rejoin
from torchsite.training.kinds import BlackBoxTraining, SiteTraining
from torchsite.training.module import Training
from torchsite.training.quiet import quiet
from torchsite.training.run_manifest import RUN_FILE, check_run, describe_run, write_run
from torchsite.training.sharding import FSDP, ShardedStrategy, whole_state

log = logging.getLogger(__name__)
Model = TypeVar("Model", bound=SITE | BlackBox)
PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed"}


@dataclass(frozen=True)
class Fitted(Generic[Model]):
    """A trained model, what its last validation found, and where everything is."""

    model: Model
    measures: dict[str, float]
    seconds: float
    folder: Path


def fit(
    model: Model,
    data: Dataset,
    config: TrainingConfig | None = None,
    *,
    validation: Dataset | None = None,
    folder: Path | str = "runs/last",
    resume: bool = False,
    progress: bool = False,
    callbacks: Sequence[Callback] = (),
    **trainer_options: Any,
) -> Fitted[Model]:
    """Train `model` on `data`; weights, logs, checkpoints and the result file go to `folder`.

    With `resume`, a run that was interrupted goes on to the weights it would have reached; without, an
    old run in the same folder is an error. Without `validation`, a tenth of the data is held out.
    Under `torchrun`, or with `devices` (and `num_nodes`) among the options for Lightning's `Trainer`, several
    processes share every batch and reach the weights that one would reach.
    """
    config, folder = config or TrainingConfig(), Path(folder)
    _check_fit(model, data)
    if validation is None:
        data, validation = hold_out(data, config.seed)
    _check_classes(data)
    model.train()  # a loaded model comes ready to answer, and Lightning would leave it so
    rejoin()
    checkpoint = _begin(folder, resume, describe_run(model, data, config))
    care = Checkpoints(folder, config.checkpoint_seconds)
    with quiet():
        n_steps = len(data) // config.batch_size
        trainer = _trainer(config, folder, n_steps, [care, *callbacks], progress, trainer_options)
        divided = isinstance(trainer.strategy, ShardedStrategy)
        training = _training(copy.deepcopy(model) if divided else model, data, validation, config)
        trainer.fit(training, ckpt_path=checkpoint, weights_only=True)
        measures = _last_measures(trainer, training)
        if divided:
            model.load_state_dict(whole_state(training.model))
    seconds = care.seconds_spent
    if trainer.is_global_zero:
        model.save_pretrained(folder / "model")
        settings = {"training": to_mapping(config), "model": to_mapping(model.config), "data": data.name}
        Result("training", measures, settings, config.seed, seconds).save(folder / "result.json")
    trainer.strategy.barrier()
    model.eval()
    return Fitted(model, measures, seconds, folder)


def hold_out(data: Dataset, seed: int, share: float = 0.1) -> tuple[Dataset, Dataset]:
    """Split off a random share for validation."""
    order = torch.randperm(len(data), generator=make_rng(seed))
    n = max(2, round(share * len(data)))
    return data[order[n:]], data[order[:n]]


def _last_measures(trainer: L.Trainer, training: Training) -> dict[str, float]:
    """What the validation at the end found; one more if the last epoch had none."""
    measured = training.recipe.epochs % training.recipe.validate_every == 0
    if not (measured and any(name.startswith("validation ") for name in trainer.callback_metrics)):
        trainer.validate(training, verbose=False)
    return {
        name.removeprefix("validation "): float(value)
        for name, value in trainer.callback_metrics.items()
        if name.startswith("validation ")
    }


def _training(model: SITE | BlackBox, data: Dataset, validation: Dataset, config: TrainingConfig) -> Training:
    if isinstance(model, SITE):
        return SiteTraining(model, data, validation, config)
    return BlackBoxTraining(model, data, validation, config)


def _trainer(
    config: TrainingConfig,
    folder: Path,
    n_steps: int,
    callbacks: Sequence[Callback],
    progress: bool,
    options: dict[str, Any],
) -> L.Trainer:
    own: list[Callback] = [CollapseWatch(config.collapse_patience), LastGood(folder)]
    if config.ema_decay:
        own.insert(0, WeightAverage(config.ema_decay))
    if progress:
        own.append(RichProgressBar(leave=True))
    settings: dict[str, Any] = {
        "accelerator": "auto",
        "max_epochs": config.epochs,
        "precision": PRECISIONS[config.precision],
        "logger": _loggers(folder),
        "callbacks": [*own, *callbacks],
        "enable_checkpointing": False,
        "enable_progress_bar": progress,
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,
        "check_val_every_n_epoch": config.validate_every,
        "log_every_n_steps": max(1, min(20, n_steps)),
    }
    if not options.get("sync_batchnorm"):
        options = options | {"plugins": [GlobalStatistics(), *_listed(options.get("plugins"))]}
    if options.get("strategy") == FSDP:
        options = options | {"strategy": ShardedStrategy()}
    try:
        trainer = L.Trainer(**(settings | launch_options() | options))
    except (ValueError, TypeError, MisconfigurationException) as error:
        raise ConfigError(f"these options do not suit Lightning's Trainer: {error}") from error
    if not isinstance(trainer.strategy, SingleDeviceStrategy | DDPStrategy | ShardedStrategy):
        raise ConfigError(
            f"strategy: expected one device, one of Lightning's DDP strategies or 'fsdp', "
            f"got {type(trainer.strategy).__name__}"
        )
    return trainer


def _listed(plugins: Any) -> list[Any]:
    return list(plugins) if isinstance(plugins, list | tuple) else [] if plugins is None else [plugins]


def _loggers(folder: Path) -> list[Logger]:
    """CSV always; TensorBoard where it is installed."""
    loggers: list[Logger] = [CSVLogger(folder, name="", version="logs")]
    try:
        loggers.append(TensorBoardLogger(folder, name="", version="logs"))
    except ModuleNotFoundError:
        log.info("TensorBoard is not installed: logging to CSV only")
    return loggers


def _begin(folder: Path, resume: bool, description: Mapping[str, Any]) -> Path | None:
    """Claim the folder for a run, or find the checkpoint from which the run in it goes on."""
    if checkpoints(folder / "checkpoints") and not resume:
        raise ConfigError(f"{folder} holds an earlier run: go on with resume=True, or name another folder")
    if resume and (folder / RUN_FILE).exists():
        check_run(folder, description)
        if is_first():
            _keep_logs(folder / "logs" / "metrics.csv")
    elif is_first():
        write_run(folder, description)
    return last_checkpoint(folder)


def _keep_logs(path: Path) -> None:
    """Move the log so far aside, since the logger begins a new one."""
    if path.exists():
        parts = len(list(path.parent.glob(f"{path.stem}-*{path.suffix}")))
        path.replace(path.with_stem(f"{path.stem}-{parts + 1}"))


def _check_fit(model: SITE | BlackBox, data: Dataset) -> None:
    """The pictures and classes of the data must be the model's."""
    if tuple(data.images.shape[1:]) != tuple(model.config.image_shape):
        raise DataError(
            f"the model takes pictures of {model.config.image_shape}, "
            f"{data.name} has {tuple(data.images.shape[1:])}: build the model for this data"
        )
    names, unnamed = model.config.classes, class_names(None, model.config.n_classes)
    if len(data.classes) != len(names) or names not in (unnamed, tuple(data.classes)):
        raise DataError(
            f"the model knows {len(names)} classes {list(names)}, {data.name} has {len(data.classes)}: "
            f"{list(data.classes)}: build the model for this data"
        )


def _check_classes(data: Dataset) -> None:
    """Without a picture a class has no prototype to learn."""
    empty = [name for name, n in zip(data.classes, data.counts, strict=True) if n == 0]
    if empty:
        raise DataError(
            f"{data.name}: no picture to train on for {', '.join(empty)}: leave these classes out"
        )
