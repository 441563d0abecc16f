"""`torchsite train FOLDER`: choose settings by the data, train, examine, and write the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchsite.cli.terminal import Terminal, say_figures, watching

if TYPE_CHECKING:
    from torchsite.autotrain import Prepared
    from torchsite.evaluation.audit import Audit
    from torchsite.training import Callback, Fitted


@dataclass(frozen=True)
class Run:
    """The options that all trainings share; `fields` are the changed fields of the recipe."""

    data: str
    folder: Path
    fields: dict[str, Any]
    resume: bool
    limit: int | None
    callbacks: Sequence["Callback"]
    console: "Terminal"

    @property
    def options(self) -> dict[str, Any]:
        """The options of `fit`."""
        return {"resume": self.resume, "progress": self.console.is_terminal, "callbacks": self.callbacks}

    def said(self, fitted: "Fitted[Any]") -> dict[str, Any]:
        """Print what was trained, and return it for JSON."""
        model = fitted.folder / "model"
        self.console.print(f"trained in {fitted.seconds:.0f} s; the model is in {model}")
        return {"model": str(model), "seconds": fitted.seconds, "measures": fitted.measures}


@dataclass(frozen=True)
class Choice:
    """The options of a training whose settings are chosen by the data; `minutes` are those of one model."""

    minutes: float
    poses: str
    labels: Path | None
    ignore: tuple[str, ...]
    folds: int
    kinds: tuple[str, ...]
    gallery: bool
    report: bool


def train_by_choice(run: Run, choice: Choice) -> dict[str, Any]:
    """Everything that `torchsite train FOLDER` does; what was found, for JSON."""
    from torchsite.autotrain import audit_prepared, examine_prepared, prepare, train_prepared
    from torchsite.training.gallery import add_gallery

    folder, console = run.folder, run.console
    prepared = prepare(
        run.data,
        minutes=choice.minutes,
        changes=run.fields,
        poses=choice.poses,
        labels=choice.labels,
        ignore=choice.ignore,
        folder=folder if run.resume else None,
        limit=run.limit,
        progress=console.is_terminal,
    )
    say_plan(prepared, console)
    fitted = train_prepared(prepared, folder, **run.options)
    said = run.said(fitted) | {
        "warnings": [str(finding) for finding in prepared.findings],
        "settings": {d.setting: {"chosen": d.chosen, "why": d.why} for d in prepared.plan.decisions},
    }
    if choice.gallery and add_gallery(fitted.model, prepared.train, folder / "model"):
        console.print("a gallery of training pictures lies beside it; without any: --no-gallery")
    folds = run_folds(prepared, choice, folder / "folds", console) if choice.folds else {}
    said |= folds
    if choice.report:
        with watching("measuring") as watch:
            result = examine_prepared(prepared, fitted, watch)
        with watching("looking for shortcuts") as watch:
            audited = audit_prepared(prepared, fitted, watch)
        result = replace(result, values={**result.values, **folds})
        said |= write_page(prepared, fitted, result, audited, console)
    return said


def write_page(
    prepared: "Prepared", fitted: "Fitted[Any]", result: Any, audited: "Audit | None", console: "Terminal"
) -> dict[str, Any]:
    """Write the examination, the audit and their page into the run's folder, and print the figures."""
    from torchsite.evaluation.audit_files import to_file
    from torchsite.evaluation.illustrate import illustrate
    from torchsite.report import write_report
    from torchsite.report.format import headline

    folder, several = fitted.folder, prepared.test.multi_hot is not None
    result.save(folder / "examination.json")
    shown = illustrate(fitted.model, prepared.test, result)
    page = write_report(result, shown, folder / "report.html", audit=audited)
    figures: dict[str, Any]
    if several:
        figures = {name: result.values[name] for name in ("labels", "mean", "right_answers")}
        say_labels(result.values["labels"], console)
    else:
        figures = headline(result)
        say_figures(figures, console)
    if audited is not None:
        to_file(audited, str(folder / "model")).save(folder / "audit.json")
        figures |= {"shortcuts": audited.verdicts}
        console.print("\n".join(audited.verdicts))
    console.print(f"report: {page}\nnext:   torchsite explain PICTURE --model {folder / 'model'}")
    return {"report": str(page), "figures": figures}


def run_folds(prepared: "Prepared", choice: Choice, folder: Path, console: "Terminal") -> dict[str, Any]:
    """The accuracy of each kind of network over the folds, and the difference of two kinds."""
    from torchsite.autotrain.choices import TRAINING_SHARE
    from torchsite.autotrain.folds import cross_validate, difference_in_words, joined, paired_difference
    from torchsite.report.format import percent, percent_interval

    data, seconds = joined(prepared.train, prepared.test), 60 * prepared.minutes * TRAINING_SHARE
    recipe, found = prepared.plan.recipe, {}
    said: dict[str, Any] = {}
    options: dict[str, Any] = {"seconds": seconds, "seed": recipe.training.seed}
    for kind in choice.kinds:
        with watching(kind) as watch:
            found[kind] = cross_validate(
                recipe, data, choice.folds, folder, kind=kind, watch=watch, **options
            )
        said[kind] = found[kind].plain()
        share = said[kind]["accuracy"]
        console.print(
            f"{choice.folds} folds, {kind}: {percent(share)} ({percent_interval(share)}) of {len(data)}"
        )
    if len(found) == 2:
        difference = paired_difference(found["site"].right, found["black_box"].right)
        words = difference_in_words(difference, "SITE", "black box")
        console.print(words, style="yellow" if "do not conclude" in words else "")
        said["difference"] = words
    return {"folds": said}


def say_labels(labels: Mapping[str, Any], console: "Terminal") -> None:
    """The figures of each label."""
    from rich.table import Table

    from torchsite.report.format import percent

    table = Table("label", "pictures", "average precision", "AUROC", "sensitivity", "specificity")
    for name, found in labels.items():
        scores = (found["average_precision"], found["auroc"])
        shares = ("–" if score is None else f"{score:.3f}" for score in scores)
        both = (percent(found[key]) for key in ("sensitivity", "specificity"))
        table.add_row(name, str(found["n"]), *shares, *both)
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
