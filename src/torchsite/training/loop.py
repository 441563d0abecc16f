"""The training loop, on Lightning's Fabric: `train` is the loop, `take_step` one step of it."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric
from lightning.fabric.loggers.logger import Logger
from torch import Tensor

from torchsite.data import Dataset
from torchsite.distributed import highest_of_ranks, mean_over_ranks, notes_of_all_ranks, rows_of_all_ranks
from torchsite.errors import TrainingError
from torchsite.model import ImageClassifier
from torchsite.objective import Batch, Objective, Share
from torchsite.objective.objective import Outcome
from torchsite.randomness import make_rng
from torchsite.training.batches import make_batch
from torchsite.training.callback import Callback
from torchsite.training.checkpoints import Checkpoints
from torchsite.training.collapse import CollapseCheck
from torchsite.training.config import TrainingConfig
from torchsite.training.optimisers import schedule, set_learning_rates
from torchsite.training.precision import Precision
from torchsite.training.validation import validate


@dataclass(eq=False)
class Run:
    """A training in progress: its parts, its callbacks, and how far it is."""

    fabric: Fabric
    objective: Objective
    losses: Any  # the objective as Fabric has set it up, through which batches pass
    optimisers: list[Any]  # torch's, as Fabric has set them up
    model: ImageClassifier
    data: Dataset
    validation: Dataset
    folder: Path
    config: TrainingConfig
    precision: Precision
    callbacks: Sequence[Callback] = ()
    loggers: list[Logger] = field(default_factory=list)
    steps_done: int = 0
    learning_rate_factor: float = 0.0  # of the last step, as a fraction of the peak
    ending: bool = False  # a callback asks the run to end
    clock: float = 0.0  # the share of the run's seconds that is used; infinite if it is to end
    measures: dict[str, float] = field(default_factory=dict)
    validation_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.checkpoints = Checkpoints(self.folder, self.config.checkpoint_seconds)
        self.collapse = CollapseCheck(self.config.collapse_patience)

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in the data."""
        return len(self.data) // self.config.batch_size

    @property
    def n_steps(self) -> int:
        """Steps of the whole run."""
        return self.config.n_steps(len(self.data))

    @property
    def epoch(self) -> int:
        """The epoch of the last step, counted from 1; before the first step the first."""
        return max(0, self.steps_done - 1) // self.steps_per_epoch + 1

    @property
    def share(self) -> Share:
        """Which rows of every global batch, and which parts of the validation, are this process's."""
        return Share(self.fabric.global_rank, self.fabric.world_size)

    @property
    def position(self) -> float:
        """How far the run is, in steps: the steps done, or what the clock makes of them if that is more."""
        return max(self.steps_done, self.clock * self.n_steps)

    @property
    def is_over(self) -> bool:
        """Whether all steps are done, the time is used, or a callback has asked to end."""
        return self.position >= self.n_steps

    def state_dict(self) -> dict[str, Any]:
        """All that the rest of the run depends on."""
        return {
            "steps_done": self.steps_done,
            "precision": self.precision.chosen,
            "objective": self.objective.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "collapse": self.collapse.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.steps_done = state["steps_done"]
        self.objective.load_state_dict(state["objective"])
        for optimiser, saved in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(saved)
        self.collapse.load_state_dict(state["collapse"])


def train(run: Run) -> None:
    """Take all steps that are not done yet, epoch by epoch, and validate; stop when the time is over."""
    n, every = run.steps_per_epoch, run.steps_per_epoch * run.config.validate_every
    for epoch in range(run.epoch, run.config.epochs + 1):
        look_at_clock(run)
        begun = max((epoch - 1) * n, run.clock * run.n_steps)
        while run.steps_done < epoch * n and not run.is_over:
            take_step(run)
            look_at_clock(run)
        tell(run, "epoch_done")
        if run.is_over or run.position // every > begun // every:
            run.measures = measure(run)
        if run.is_over:
            break
    run.checkpoints.save_if_due(run, at_end=True)


def take_step(run: Run) -> None:
    """One step: the losses of a batch in all its views, their gradients, and the update of the weights."""
    config, fabric, like = run.config, run.fabric, next(run.model.parameters())
    batch = make_batch(run.data, config, run.objective.views, run.steps_done, like, run.share, run.clock)
    tell(run, "step_begins", batch)
    outcomes: list[Outcome] = []
    with seeded(config.seed, run.steps_done, fabric.global_rank):
        for part in batch.parts(config.accumulate):
            with fabric.no_backward_sync(run.losses, enabled=not part.share.is_last_part):
                with run.precision.autocast(fabric.device):
                    losses, features = run.losses(part)
                fabric.backward(losses["loss"] / config.accumulate)
            outcomes.append(Outcome({name: loss.detach().float() for name, loss in losses.items()}, features))
    means = mean_losses(run, batch, [outcome.losses for outcome in outcomes])
    run.learning_rate_factor = schedule(config, run.n_steps)(run.position)
    set_learning_rates(run.optimisers, run.learning_rate_factor)
    for optimiser in run.optimisers:
        optimiser.step()
        optimiser.zero_grad()
    seen = [outcome.features for outcome in outcomes if outcome.features is not None]
    run.objective.learn(batch, torch.cat(seen) if seen else None)
    run.steps_done += 1
    tell(run, "step_done", means)
    run.checkpoints.save_if_due(run)


def look_at_clock(run: Run) -> None:
    """Set `run.clock`, the share of the time that is used, by the first process's clock for all processes."""
    clock = 0.0
    if run.config.seconds is not None and run.fabric.is_global_zero:
        clock = run.checkpoints.seconds_spent / run.config.seconds
    run.clock = highest_of_ranks(math.inf if run.ending else clock)


def mean_losses(run: Run, batch: Batch, parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The losses of a step as means over its parts and over all processes.

    If they are not finite, all processes stop with an error that names the pictures.
    """
    own = {name: torch.stack([losses[name] for losses in parts]).mean() for name in parts[0]}
    means = dict(zip(own, mean_over_ranks(torch.stack([*own.values()])), strict=True))
    if torch.isfinite(means["loss"]):
        return means
    losses = rows_of_all_ranks(own["loss"].reshape(1))
    pictures = rows_of_all_ranks(batch.rows.to(losses.device)).reshape(len(losses), -1)
    raise TrainingError(
        f"the loss became {means['loss'].item()} at step {run.steps_done}, on the pictures numbered "
        f"{pictures[~torch.isfinite(losses)].flatten().tolist()}: lower the learning rate (now "
        f"{run.config.learning_rate:g}) or look at these pictures; the last good weights are kept in the "
        "run's folder"
    )


def measure(run: Run) -> dict[str, float]:
    """Validate the model as it is now."""
    begun = time.monotonic()
    with run.precision.autocast(run.fabric.device):
        measures = validate(run.model, run.validation, run.config, run.share)
    run.validation_seconds = time.monotonic() - begun
    tell(run, "validated", measures, run.validation_seconds)
    return measures


def tell(run: Run, event: str, *news: Any) -> None:
    """Call this method of all callbacks; see `Callback`."""
    for callback in run.callbacks:
        getattr(callback, event)(run, *news)


def check_one_place(run: Run) -> None:
    """An error unless all processes go on from the same step: a shared file system may lag."""
    places = sorted(set(notes_of_all_ranks(run.steps_done)))
    if len(places) > 1:
        raise TrainingError(
            f"the processes found checkpoints of different steps ({places}): "
            f"their folder must be the same on all nodes; start again"
        )


@contextmanager
def seeded(seed: int, step: int, rank: int) -> Iterator[None]:
    """Seed torch's global random state for one step and restore it after, so that dropout can be resumed."""
    with torch.random.fork_rng():
        torch.manual_seed(make_rng(seed, "step", step, rank).initial_seed())
        yield
