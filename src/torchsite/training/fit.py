"""`fit`: from a model and a data set to a trained model, a log and a result file."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, EMAWeightAveraging, RichProgressBar
from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger

from torchsite.configs import to_mapping
from torchsite.data import Dataset
from torchsite.errors import ConfigError, DataError
from torchsite.model import SITE, BlackBox
from torchsite.results import Result
from torchsite.training.callbacks import Checkpoints, CollapseWatch, LastGood, last_checkpoint
from torchsite.training.config import TrainingConfig
from torchsite.training.module import BlackBoxTraining, SiteTraining, Training

log = logging.getLogger(__name__)
Model = TypeVar("Model", SITE, BlackBox)
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
    """
    config, folder = config or TrainingConfig(), Path(folder)
    checkpoint = _find_checkpoint(folder, resume)
    _check_fit(model, data)
    if validation is None:
        data, validation = hold_out(data, config.seed)
    started = time.monotonic()
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # fastest for convolutions
    training = _training(model, data, validation, config)
    trainer = _trainer(config, folder, progress, callbacks, trainer_options)
    trainer.fit(training, ckpt_path=checkpoint, weights_only=True)
    seconds = time.monotonic() - started
    measures = {
        name.removeprefix("validation "): float(value)
        for name, value in trainer.callback_metrics.items()
        if name.startswith("validation ")
    }
    if trainer.is_global_zero:
        model.save_pretrained(folder / "model")
        settings = {"training": to_mapping(config), "model": to_mapping(model.config), "data": data.name}
        Result("training", measures, settings, config.seed, seconds).save(folder / "result.json")
    return Fitted(model.eval(), measures, seconds, folder)


def hold_out(data: Dataset, seed: int, share: float = 0.1) -> tuple[Dataset, Dataset]:
    """Split off a random share for validation."""
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))
    n = max(2, round(share * len(data)))
    return data[order[n:]], data[order[:n]]


def _training(model: SITE | BlackBox, data: Dataset, validation: Dataset, config: TrainingConfig) -> Training:
    if isinstance(model, SITE):
        return SiteTraining(model, data, validation, config)
    return BlackBoxTraining(model, data, validation, config)


def _trainer(
    config: TrainingConfig,
    folder: Path,
    progress: bool,
    callbacks: Sequence[Callback],
    options: dict[str, Any],
) -> L.Trainer:
    own: list[Callback] = [
        CollapseWatch(config.collapse_patience),
        LastGood(folder),
        Checkpoints(folder, config.checkpoint_seconds),
    ]
    if config.ema_decay:
        own.insert(0, EMAWeightAveraging(decay=config.ema_decay))
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
        "log_every_n_steps": 20,
    }
    return L.Trainer(**(settings | options))


def _loggers(folder: Path) -> list[Logger]:
    """CSV always; TensorBoard where it is installed."""
    loggers: list[Logger] = [CSVLogger(folder, name="", version="logs")]
    try:
        loggers.append(TensorBoardLogger(folder, name="", version="logs"))
    except ModuleNotFoundError:
        log.info("TensorBoard is not installed: logging to CSV only")
    return loggers


def _find_checkpoint(folder: Path, resume: bool) -> Path | None:
    found = last_checkpoint(folder)
    if found and not resume:
        raise ConfigError(f"{folder} holds an earlier run: go on with resume=True, or name another folder")
    return found


def _check_fit(model: SITE | BlackBox, data: Dataset) -> None:
    """The pictures and classes of the data must be the model's."""
    if tuple(data.images.shape[1:]) != tuple(model.config.image_shape):
        raise DataError(
            f"the model takes pictures of {model.config.image_shape}, "
            f"{data.name} has {tuple(data.images.shape[1:])}: build the model for this data"
        )
    if len(data.classes) != model.config.n_classes:
        raise DataError(
            f"the model knows {model.config.n_classes} classes, {data.name} has {len(data.classes)}"
        )
