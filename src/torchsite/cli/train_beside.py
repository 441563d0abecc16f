"""`torchsite train FOLDER`: print the chosen settings, cross-validate, print scores of labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchsite.cli.terminal import watching

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchsite.autotrain import Prepared
    from torchsite.terminal import Terminal


def run_folds(
    prepared: "Prepared", n: int, kinds: tuple[str, ...], folder: Path, console: "Terminal"
) -> dict[str, Any]:
    """The accuracy of each kind of network over `n` folds, and the difference of two kinds."""
    from torchsite.autotrain.choices import TRAINING_SHARE
    from torchsite.autotrain.folds import cross_validate, difference_in_words, joined, paired_difference
    from torchsite.report.format import percent, percent_interval

    data, seconds = joined(prepared.train, prepared.test), 60 * prepared.minutes * TRAINING_SHARE
    found, said = {}, {}
    for kind in kinds:
        with watching(kind) as watch:
            found[kind] = cross_validate(
                prepared.plan.recipe,
                data,
                n,
                folder,
                seconds=seconds,
                kind=kind,
                seed=prepared.plan.recipe.training.seed,
                watch=watch,
            )
        said[kind] = found[kind].plain()
        share = said[kind]["accuracy"]
        console.print(f"{n} folds, {kind}: {percent(share)} ({percent_interval(share)}) of {len(data)}")
    if len(found) < 2:
        return said
    words = difference_in_words(
        paired_difference(found["site"].right, found["black_box"].right), "SITE", "black box"
    )
    console.print(words, style="yellow" if "do not conclude" in words else "")
    return said | {"difference": words}


def say_labels(values: "Mapping[str, Any]", console: "Terminal") -> None:
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


def say_plan(prepared: "Prepared", console: "Terminal") -> None:
    """Print the warnings, the chosen settings and the reasons."""
    from rich.table import Table

    console.print(f"{prepared.train!r}, {len(prepared.test):,} more to test with")
    for finding in prepared.findings:
        console.print(f"warning: {finding}", style="yellow")
    table = Table("setting", "chosen", "because")
    for decision in prepared.plan.decisions:
        table.add_row(decision.setting, decision.chosen, decision.why)
    console.print(table)
