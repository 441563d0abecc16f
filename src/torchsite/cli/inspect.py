"""`torchsite data` and `torchsite models`: list data sets and models."""

from typing import Annotated

import typer

from torchsite.cli.terminal import AsJson, say_json, terminal


def data(
    name: Annotated[str, typer.Argument(help="A data set or a folder; without one, the catalogue.")] = "",
    split: Annotated[str, typer.Option(help="Which part.")] = "train",
    as_json: AsJson = False,
) -> None:
    """List the data sets, or describe one.

    Examples:

    torchsite data

    torchsite data mnist_sample --split test

    torchsite data photos/birds --json
    """
    from torchsite.data import CATALOGUE, load_dataset

    if not name:
        say_json(list(CATALOGUE)) if as_json else terminal().print("\n".join(CATALOGUE))
        return
    found = load_dataset(name, split)
    if not as_json:
        terminal().print(found.summary())
        return
    counts = dict(zip(found.classes, found.counts, strict=True))
    shape = list(found.images.shape[1:])
    say_json({"name": found.name, "split": split, "n": len(found), "shape": shape, "classes": counts})


def models(as_json: AsJson = False) -> None:
    """List the models that come with the package.

    Example:

    torchsite models --json
    """
    from rich.table import Table

    from torchsite.configs import to_mapping
    from torchsite.model import shipped_models
    from torchsite.model.pretrained import WEIGHTS_FILE, read_config

    found = {name: (read_config(folder), folder / WEIGHTS_FILE) for name, folder in shipped_models().items()}
    if as_json:
        say_json({name: to_mapping(config) for name, (config, _) in found.items()})
        return
    table = Table("model", "kind", "pictures", "classes", "poses", "size")
    for name, (config, weights) in found.items():
        shape, size = "×".join(map(str, config.image_shape)), f"{weights.stat().st_size / 1e6:.1f} MB"
        table.add_row(name, config.kind, shape, str(config.n_classes), str(config.family), size)
    terminal().print(table)
