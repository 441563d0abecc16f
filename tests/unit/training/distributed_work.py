"""What each process of a distributed run does, case by case.

torchrun --nproc-per-node 2 distributed_work.py FOLDER '{"name": {"extractor": "pyramid", …}, …}'
"""

import json
import os
import sys
from pathlib import Path
from unittest import mock

import torch
from lightning.pytorch.callbacks import Callback
from torch.distributed.tensor import DTensor
from training_makers import digits, make_config, make_site

from torchsite.data import to_float
from torchsite.training import fit, module


class KillOnce(Callback):
    """Notes all steps; the second rank kills itself after some of them, unless it was started before."""

    def __init__(self, folder, steps):
        self.folder, self.steps = folder, steps

    def on_train_batch_end(self, trainer, pl_module, *_):
        if trainer.is_global_zero:
            with (self.folder / "steps.txt").open("a") as notes:
                notes.write(f"{pl_module.steps_done} ")
        if pl_module.steps_done == self.steps and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            trainer.strategy.barrier()
            if trainer.global_rank == 1:
                os.kill(os.getpid(), 9)


class NoteShare(Callback):
    """Notes which share of the model's weights this process holds."""

    def __init__(self, folder):
        self.folder = folder

    def on_train_start(self, trainer, pl_module):
        parameters = list(pl_module.model.parameters())
        held = sum(p.to_local().numel() if isinstance(p, DTensor) else p.numel() for p in parameters)
        share = held / sum(p.numel() for p in parameters)
        (self.folder / f"share-{trainer.global_rank}.txt").write_text(str(share))


def doubled(pixels):
    return to_float(pixels).double()


def train(folder, extractor, kill_after=None, model=None, options=None, **changes):
    """One run in double precision: rounding is then too small to hide anything."""
    with mock.patch.object(module, "to_float", doubled), mock.patch.object(targets, "to_float", doubled):
        return fit(
            model or make_site(extractor).double(),
            digits(),
            make_config(**changes),
            validation=digits(600, "test"),
            folder=folder,
            resume=True,
            callbacks=[NoteShare(folder), *([] if kill_after is None else [KillOnce(folder, kill_after)])],
            log_every_n_steps=1,
            **({"precision": "64-true"} | (options or {})),
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, case in json.loads(sys.argv[2]).items():
        train(Path(sys.argv[1]) / name, **case)
