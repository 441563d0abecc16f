"""`torchsite train`: from a data set or a folder of pictures to a self-explaining classifier."""

from pathlib import Path
from typing import Annotated, Any

import typer

from torchsite.cli.terminal import AsJson, say_json, terminal
from torchsite.cli.train_folder import Choice, Run, train_by_choice
from torchsite.errors import ConfigError

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
        str,
        typer.Option(
            help="Folders: any (full turns, mirrors), upright, paper; auto detects an upright orientation."
        ),
    ] = "auto",
    out: Annotated[Path | None, typer.Option(help="The run's folder.")] = None,
    resume: Annotated[bool, typer.Option(help="Continue an interrupted run.")] = False,
    limit: Annotated[int | None, typer.Option(min=2, help="Only some of the pictures.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="A CSV with several labels (or none) for each picture of the folder.")
    ] = None,
    ignore: Annotated[
        list[Path] | None,
        typer.Option(help="Learn to do without these regions: boxes.json or a folder of masks."),
    ] = None,
    ignore_group: Annotated[
        list[str] | None, typer.Option(help="The same for a group that an audit found: audit.json:3.")
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
        str, typer.Option(help="GPUs of each node, or processes on CPUs; torchrun sets it itself.")
    ] = "auto",
    nodes: Annotated[int, typer.Option(min=1, help="Machines that train together.")] = 1,
    log: Annotated[
        str, typer.Option(help="Write explanation sheets while training: tensorboard or wandb.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Train a model. For your own pictures, settings are chosen by the data:

    torchsite train photos/birds --minutes 30

    Published data sets have a recipe of their name, every field of which can be given as an option:

    torchsite train mnist --epochs 3 --terms.transformation.targets mean --max-shift 0.5

    What an audit has found, or what you know to be a shortcut, can be trained away:

    torchsite train photos/birds --ignore-group audit.json:3 --ignore boxes.json

    --log tensorboard shows how the maps are learnt: tensorboard --logdir RUN/logs.
    """
    from torchsite.distributed import is_first
    from torchsite.training import ExplanationSheets
    from torchsite.training.launch import launch_options
    from torchsite.training.recipes import shipped_recipes

    folder, recipes = out or Path("runs") / Path(data).resolve().name, shipped_recipes()
    callbacks = [ExplanationSheets(log)] if log else []
    given = {"devices": int(devices) if devices.isdigit() else devices, "num_nodes": nodes}
    launch = {name: value for name, value in given.items() if value not in ("auto", 1)}
    run = Run(data, folder, parse_fields(context.args), resume, limit, callbacks, terminal(stderr=as_json))
    ignored = (*map(str, ignore or ()), *(ignore_group or ()))
    known = recipe or (data if data in recipes else "")
    if known and minutes is None:
        if poses != "auto":
            raise ConfigError(
                "--poses is for settings chosen by the data: give --minutes, or --max-rotation and others"
            )
        said = train_by_recipe(run, known, launch, ignored)
    elif recipe:
        raise ConfigError("--minutes chooses the settings, --recipe names them: give one of the two")
    elif launch or launch_options():
        raise ConfigError(
            "several processes must agree on the settings: give --recipe, with a file or one of "
            + ", ".join(recipes)
        )
    elif labels is not None and folds:
        raise ConfigError("--folds is for one class a picture: leave it out with --labels")
    else:
        kinds = ("site", "black_box") if black_box else ("site",)
        share = (minutes or MINUTES) / (1 + folds * len(kinds))
        said = train_by_choice(run, Choice(share, poses, labels, ignored, folds, kinds, gallery, report))
    if as_json and is_first():
        say_json(said)


def train_by_recipe(
    run: Run, recipe: str, launch: dict[str, Any], ignored: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Train by a recipe; return what was trained, for JSON."""
    from torchsite.data import load_dataset
    from torchsite.distributed import is_first
    from torchsite.evaluation.audit_ignored import with_regions
    from torchsite.training import fit
    from torchsite.training.recipes import build_model, ignoring, load_recipe, override

    run.console.quiet = not is_first()
    chosen = override(ignoring(load_recipe(recipe), ignored), {"data": run.data} | run.fields)
    train_set, test_set = (
        load_dataset(run.data, half, size=chosen.size, margin=chosen.margin) for half in ("train", "test")
    )
    train_set = with_regions(train_set, chosen.ignore, test_set)
    train_set = train_set if run.limit is None else train_set[: run.limit]
    run.console.print(f"{train_set!r}\nwriting to {run.folder}")
    model = build_model(chosen.model, train_set, chosen.training)
    options = run.options | launch | {"validation": test_set, "folder": run.folder}
    fitted = fit(model, train_set, chosen.training, **options)
    for name, value in fitted.measures.items():
        run.console.print(f"{name:>16}  {value:.4f}")
    return run.said(fitted)


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
