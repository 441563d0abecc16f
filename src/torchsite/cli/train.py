"""`torchsite train`: from a data set or a folder of pictures to a self-explaining classifier."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchsite.cli.terminal import AsJson, say_figures, say_json, terminal, watching
from torchsite.cli.train_beside import Beside, run_folds, say_labels
from torchsite.errors import ConfigError

if TYPE_CHECKING:
    from torchsite.autotrain import Prepared
    from torchsite.training import Callback

MINUTES = 30.0


def train(
    context: typer.Context,
    data: Annotated[
        str, typer.Argument(help="A data set's name, or a folder with one sub-folder per class.")
    ],
    recipe: Annotated[
        str, typer.Option(help="A shipped recipe's name or a YAML file; the data's own if any.")
    ] = "",
    minutes: Annotated[
        float | None,
        typer.Option(min=0.1, help=f"Choose settings that fit into this time; folders: {MINUTES:g}."),
    ] = None,
    poses: Annotated[
        str, typer.Option(help="Folders: any (full turns, mirrors), upright, paper; auto asks the pictures.")
    ] = "auto",
    out: Annotated[Path | None, typer.Option(help="The run's folder.")] = None,
    resume: Annotated[bool, typer.Option(help="Continue an interrupted run.")] = False,
    limit: Annotated[int | None, typer.Option(min=2, help="Only some of the pictures.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="A CSV of labels of the folder's pictures: several may be true.")
    ] = None,
    folds: Annotated[
        int, typer.Option(min=0, help="Folders: also the accuracy of so many models, each without a fold.")
    ] = 0,
    black_box: Annotated[
        bool, typer.Option("--black-box", help="With --folds: the plain network beside it, in the same time.")
    ] = False,
    gallery: Annotated[
        bool,
        typer.Option(help="Folders: keep some training pictures beside the model, to show prototypes by."),
    ] = True,
    report: Annotated[bool, typer.Option(help="With chosen settings: end with a report.")] = True,
    devices: Annotated[
        str, typer.Option(help="GPUs of each node, or processes on CPUs; torchrun tells by itself.")
    ] = "auto",
    nodes: Annotated[int, typer.Option(min=1, help="Machines that train together.")] = 1,
    strategy: Annotated[str, typer.Option(help="How processes share the work.")] = "auto",
    log: Annotated[
        str, typer.Option(help="Write explanation sheets while training: tensorboard or wandb.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Train a model. Data sets have recipes; for your own pictures, settings are chosen by the data:

    torchsite train photos/birds --minutes 30

    Every field of a recipe can be given as an option:

    torchsite train mnist --epochs 3 --terms.transformation.targets mean --max-shift 0.5

    --log tensorboard shows in logs/sheets of the run how its maps are learnt.
    """
    from torchsite.data import CATALOGUE
    from torchsite.distributed import is_first
    from torchsite.training.launch import launch_options
    from torchsite.training.recipes import shipped_recipes

    fields, launch = parse_fields(context.args), launch_of(devices, nodes, strategy)
    folder = out or Path("runs") / Path(data).resolve().name
    callbacks = callbacks_of(log, folder)
    known = recipe or (data if data in shipped_recipes() else "mnist_sample" if data in CATALOGUE else "")
    if known and minutes is None and poses != "auto":
        raise ConfigError(
            "--poses is for settings chosen by the data: give --minutes, or --max-rotation and others"
        )
    if known and minutes is None:
        said = _by_recipe(known, data, fields, folder, resume, limit, as_json, launch, callbacks)
    elif recipe:
        raise ConfigError("--minutes chooses the settings, --recipe names them: give one of the two")
    elif launch or launch_options():
        raise ConfigError("several processes must agree on the settings: name them with --recipe")
    else:
        kinds = ("site", "black_box") if black_box else ("site",)
        if labels is not None and folds:
            raise ConfigError("--folds is for one class a picture: leave it out with --labels")
        beside = Beside(folds, kinds if folds else (), labels, gallery)
        said = _by_choice(
            data, minutes or MINUTES, fields, poses, beside, folder, resume, limit, report, as_json, callbacks
        )
    if as_json and is_first():
        say_json(said)


def launch_of(devices: str, nodes: int, strategy: str) -> dict[str, Any]:
    """What `fit` must be told beyond its defaults."""
    given = {
        "devices": int(devices) if devices.isdigit() else devices,
        "num_nodes": nodes,
        "strategy": strategy,
    }
    return {name: value for name, value in given.items() if value not in ("auto", 1)}


def callbacks_of(log: str, folder: Path) -> list["Callback"]:
    """Who looks on, if anyone was asked to; an unknown or missing board is an error before any work."""
    from torchsite.training import ExplanationSheets

    return [ExplanationSheets(log, folder / "logs" / "sheets")] if log else []


def parse_fields(words: list[str]) -> dict[str, Any]:
    """`--name value` and `--name=value` pairs as fields; values are read as YAML."""
    import yaml

    fields: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise ConfigError(f"expected an option such as --epochs 3, got {word!r}")
        name, has_value, value = word[2:].partition("=")
        if not has_value:
            if not rest or rest[0].startswith("--"):
                raise ConfigError(f"option --{name} needs a value")
            value = rest.pop(0)
        fields[name] = yaml.safe_load(value)
    return fields


def _by_recipe(
    recipe: str,
    data: str,
    fields: dict[str, Any],
    folder: Path,
    resume: bool,
    limit: int | None,
    as_json: bool,
    launch: dict[str, Any],
    callbacks: list["Callback"],
) -> dict[str, Any]:
    """Train as a recipe says."""
    from torchsite.data import load_dataset
    from torchsite.distributed import is_first
    from torchsite.training.by_recipe import fit_recipe
    from torchsite.training.recipes import load_recipe, override

    console = terminal(stderr=as_json)
    console.quiet = not is_first()
    chosen = override(load_recipe(recipe), {"data": data} | fields)
    train_set, test_set = (
        load_dataset(data, half, size=chosen.size, margin=chosen.margin) for half in ("train", "test")
    )
    train_set = train_set if limit is None else train_set[:limit]
    console.print(f"{train_set!r}\nwriting to {folder}")
    fitted = fit_recipe(
        chosen,
        train_set,
        validation=test_set,
        folder=folder,
        resume=resume,
        progress=console.is_terminal,
        callbacks=callbacks,
        **launch,
    )
    for name, value in fitted.measures.items():
        console.print(f"{name:>16}  {value:.4f}")
    console.print(f"trained in {fitted.seconds:.0f} s; the model is in {fitted.folder / 'model'}")
    return {"model": str(fitted.folder / "model"), "seconds": fitted.seconds, "measures": fitted.measures}


def _by_choice(
    data: str,
    minutes: float,
    fields: dict[str, Any],
    poses: str,
    beside: Beside,
    folder: Path,
    resume: bool,
    limit: int | None,
    report: bool,
    as_json: bool,
    callbacks: list["Callback"],
) -> dict[str, Any]:
    """Choose settings by the data, train, examine, and write the report."""
    from torchsite.autotrain import examine_prepared, prepare, train_prepared
    from torchsite.evaluation.illustrate import illustrate, illustrate_labels
    from torchsite.report import write_report
    from torchsite.report.format import headline
    from torchsite.training.gallery import add_gallery

    console = terminal(stderr=as_json)
    earlier = folder if resume else None
    prepared = prepare(
        data,
        minutes=minutes / beside.n_trainings,
        changes=fields,
        poses=poses,
        labels=beside.labels,
        folder=earlier,
        limit=limit,
        progress=console.is_terminal,
    )
    say_plan(prepared, as_json)
    fitted = train_prepared(
        prepared, folder, resume=resume, progress=console.is_terminal, callbacks=callbacks
    )
    console.print(f"trained in {fitted.seconds:.0f} s; the model is in {folder / 'model'}")
    if beside.gallery and add_gallery(fitted.model, prepared.train, folder / "model"):
        console.print("a gallery of training pictures lies beside it; without any: --no-gallery")
    said: dict[str, Any] = {
        "model": str(folder / "model"),
        "seconds": fitted.seconds,
        "measures": fitted.measures,
        "warnings": [str(finding) for finding in prepared.findings],
        "settings": {d.setting: {"chosen": d.chosen, "why": d.why} for d in prepared.plan.decisions},
    }
    found = run_folds(prepared, beside, folder, console)
    said |= {"folds": found} if found else {}
    if not report:
        return said
    with watching("measuring") as watch:
        result = examine_prepared(prepared, fitted, watch)
    if found:
        result = replace(result, values={**result.values, "folds": found})
    result.save(folder / "examination.json")
    if beside.labels is not None:
        shown = illustrate_labels(fitted.model, prepared.test, result)
        page = write_report(result, shown, folder / "report.html")
        say_labels(result.values, console)
        console.print(f"report: {page}")
        figures = {name: result.values[name] for name in ("labels", "mean", "right_answers")}
        return said | {"report": str(page), "figures": figures}
    page = write_report(result, illustrate(fitted.model, prepared.test, result), folder / "report.html")
    if not as_json:
        say_figures(headline(result))
    console.print(f"report: {page}\nnext:   torchsite explain PICTURE --model {folder / 'model'}")
    return said | {"report": str(page), "figures": headline(result)}


def say_plan(prepared: "Prepared", as_json: bool) -> None:
    """What harms, what was chosen, and why."""
    from rich.table import Table

    console = terminal(stderr=as_json)
    console.print(f"{prepared.train!r}, {len(prepared.test):,} more to test with")
    for finding in prepared.findings:
        console.print(f"warning: {finding}", style="yellow")
    table = Table("setting", "chosen", "because")
    for decision in prepared.plan.decisions:
        table.add_row(decision.setting, decision.chosen, decision.why)
    console.print(table)
