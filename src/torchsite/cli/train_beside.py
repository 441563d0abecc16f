"""What `torchsite train FOLDER` does beside one training: folds, the black box, tables of several labels."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchsite.cli.terminal import watching

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchsite.autotrain import Prepared


@dataclass(frozen=True)
class Beside:
    """What is made beside the model: folds of these kinds of networks, a gallery; and the table of labels."""

    folds: int = 0
    kinds: tuple[str, ...] = ()
    labels: Path | None = None
    gallery: bool = True

    @property
    def n_trainings(self) -> int:
        """How many trainings share the minutes."""
        return 1 + self.folds * len(self.kinds)


def run_folds(prepared: "Prepared", beside: Beside, folder: Path, console: Any) -> dict[str, Any]:
    """The accuracy of each kind over all folds, and what their difference says."""
    from torchsite.autotrain.choices import TRAINING_SHARE
    from torchsite.autotrain.folds import cross_validate, difference_in_words, joined, paired_difference
    from torchsite.report.format import percent, percent_interval

    if not beside.folds:
        return {}
    data, seconds = joined(prepared.train, prepared.test), 60 * prepared.minutes * TRAINING_SHARE
    found, said = {}, {}
    for kind in beside.kinds:
        with watching(kind) as watch:
            found[kind] = cross_validate(
                prepared.plan.recipe,
                data,
                beside.folds,
                folder / "folds",
                seconds=seconds,
                kind=kind,
                seed=prepared.plan.recipe.training.seed,
                watch=watch,
            )
        said[kind] = found[kind].plain()
        share = said[kind]["accuracy"]
        console.print(
            f"{beside.folds} folds, {kind}: {percent(share)} ({percent_interval(share)}) of {len(data)}"
        )
    if len(found) < 2:
        return said
    words = difference_in_words(
        paired_difference(found["site"].right, found["black_box"].right), "SITE", "black box"
    )
    console.print(words, style="yellow" if "do not conclude" in words else "")
    return said | {"difference": words}


def say_labels(values: "Mapping[str, Any]", console: Any) -> None:
    """The figures of each label."""
    from rich.table import Table

    from torchsite.report.format import percent

    table = Table("label", "pictures", "average precision", "AUROC", "sensitivity", "specificity")
    for name, found in values["labels"].items():
        shares = (
            "–" if found[key] is None else f"{found[key]:.3f}" for key in ("average_precision", "auroc")
        )
        table.add_row(
            name, str(found["n"]), *shares, percent(found["sensitivity"]), percent(found["specificity"])
        )
    console.print(table)
