"""`torchsite data` and `torchsite models`: what there is to work with."""

from typing import Annotated

import typer
from rich.table import Table

from torchsite.cli.terminal import terminal
from torchsite.data import CATALOGUE, load_dataset
from torchsite.model import shipped_models
from torchsite.model.pretrained import WEIGHTS_FILE, read_config


def data(
    name: Annotated[str, typer.Argument(help="A data set or a folder; without one, the catalogue.")] = "",
    split: Annotated[str, typer.Option(help="Which part.")] = "train",
) -> None:
    """List the data sets, or describe one."""
    console = terminal()
    if name:
        console.print(load_dataset(name, split).summary())
        return
    for known in CATALOGUE:
        console.print(known)


def models() -> None:
    """List the models that come with the package."""
    table = Table("model", "kind", "pictures", "classes", "poses", "size")
    for name, folder in shipped_models().items():
        config = read_config(folder)
        size = (folder / WEIGHTS_FILE).stat().st_size / 1e6
        shape = "×".join(map(str, config.image_shape))
        table.add_row(name, config.kind, shape, str(config.n_classes), str(config.family), f"{size:.1f} MB")
    terminal().print(table)
