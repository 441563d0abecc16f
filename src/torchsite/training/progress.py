"""Lightning's counts of batches and epochs, as an uninterrupted run has them after so many steps.

A checkpoint taken at the end of a batch finds Lightning between two counts, and it sets them right by
guessing where it was when it resumes. After a few interruptions the guess goes wrong, an epoch is counted
twice and the run takes more steps than it should. All counts follow from the number of steps, so they are
written anew.
"""

from typing import Any

Counts = dict[str, int]


def set_progress(fit_loop: dict[str, Any], steps: int, steps_per_epoch: int) -> None:
    """Overwrite the counts in the saved state of Lightning's fit loop; `steps` is at least 1."""
    epoch, batch = divmod(steps - 1, steps_per_epoch)
    batches, epochs = fit_loop["epoch_loop.batch_progress"], fit_loop["epoch_progress"]
    batches["total"].update(_within(steps, finished=steps, completed=steps - 1))
    batches["current"].update(_within(batch + 1, finished=batch + 1, completed=batch))
    batches["is_last_batch"] = batch + 1 == steps_per_epoch
    for span in ("total", "current"):
        epochs[span].update(_within(epoch + 1, finished=epoch, completed=epoch))
    fit_loop["epoch_loop.state_dict"]["_batches_that_stepped"] = steps - 1
    fit_loop["epoch_loop.val_loop.batch_progress"]["total"].update(_within(0, finished=0, completed=0))


def _within(begun: int, finished: int, completed: int) -> Counts:
    return {"ready": begun, "started": begun, "processed": finished, "completed": completed}
