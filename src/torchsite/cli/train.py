"""`torchsite train`: from a data set or a folder of pictures to a self-explaining classifier."""

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from torchsite.cli.terminal import terminal
from torchsite.data import load_dataset
from torchsite.errors import ConfigError
from torchsite.training import fit
from torchsite.training.recipes import build_model, load_recipe, override, shipped_recipes

GENERAL_RECIPE = "mnist_sample"


def train(
    context: typer.Context,
    data: Annotated[
        str, typer.Argument(help="A data set's name, or a folder with one sub-folder per class.")
    ],
    recipe: Annotated[
        str, typer.Option(help="A shipped recipe's name or a YAML file; the data's own if any.")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="The run's folder.")] = None,
    resume: Annotated[bool, typer.Option(help="Continue an interrupted run.")] = False,
    limit: Annotated[int | None, typer.Option(min=2, help="Only the first pictures.")] = None,
) -> None:
    """Train a model. Every field of the recipe can be given as an option:

    torchsite train mnist --epochs 3 --targets mean --model.generator shuffle --max-shift 0.5
    """
    console = terminal()
    chosen = override(load_recipe(recipe or _recipe_for(data)), {"data": data} | parse_fields(context.args))
    train_set, test_set = load_dataset(data, "train"), load_dataset(data, "test")
    train_set = train_set if limit is None else train_set[:limit]
    folder = out or Path("runs") / Path(data).name
    console.print(f"{train_set!r}\nwriting to {folder}")
    model = build_model(chosen.model, train_set, chosen.training)
    fitted = fit(
        model,
        train_set,
        chosen.training,
        validation=test_set,
        folder=folder,
        resume=resume,
        progress=console.is_terminal,
    )
    for name, value in fitted.measures.items():
        console.print(f"{name:>16}  {value:.4f}")
    console.print(f"trained in {fitted.seconds:.0f} s; the model is in {fitted.folder / 'model'}")


def parse_fields(words: list[str]) -> dict[str, Any]:
    """`--name value` and `--name=value` pairs as fields; values are read as YAML."""
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


def _recipe_for(data: str) -> str:
    return data if data in shipped_recipes() else GENERAL_RECIPE
