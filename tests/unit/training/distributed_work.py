"""What each process of a distributed run does, case by case.

torchrun --nproc-per-node 2 distributed_work.py FOLDER '{"name": {"extractor": "pyramid", …}, …}'
"""

import json
import os
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from torchsite.training import Callback, checkpoints, fit
from training_makers import FakeClock, digits, make_config, make_site


class KillOnce(Callback):
    """Notes all steps; the second rank kills itself after some of them, unless it was started before."""

    def __init__(self, folder, steps):
        self.folder, self.steps = folder, steps

    def step_begins(self, run, batch):
        if run.steps_done == self.steps and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            run.fabric.barrier()
            if run.fabric.global_rank == 1:
                os.kill(os.getpid(), 9)
        elif run.fabric.is_global_zero:
            with (self.folder / "steps.txt").open("a") as notes:
                notes.write(f"{run.steps_done + 1} ")


def train(folder, extractor, kill_after=None, model=None, options=None, pace=None, **changes):
    """One run in double precision: rounding is then too small to hide anything.

    With `pace` the run has a clock of its own, which the steps move by so much; other ranks have faster ones.
    """
    callbacks = [] if kill_after is None else [KillOnce(folder, kill_after)]
    if pace is not None:
        callbacks.append(FakeClock(lambda now: pace * (1 + 10 * int(os.environ.get("RANK", 0)))))
        checkpoints.time = callbacks[-1]
    return fit(
        model or make_site(extractor).double(),
        digits(),
        make_config(**changes),
        validation=digits(300, "test"),
        folder=folder,
        resume=True,
        callbacks=callbacks,
        **(options or {}),
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, case in json.loads(sys.argv[2]).items():
        train(Path(sys.argv[1]) / name, **case)
