"""`torchsite demo`: the whole way through the house in about a minute, with no network."""

from pathlib import Path
from typing import Annotated

import typer

from torchsite.cli.terminal import terminal
from torchsite.data import load_dataset
from torchsite.experiments.evaluation import evaluate
from torchsite.experiments.runs import trained
from torchsite.model import SITE
from torchsite.report.demo import write_demo
from torchsite.report.results import headline

RECIPE = "mnist_sample"


def demo(
    out: Annotated[Path, typer.Option(help="Where to write; a finished run there is used again.")] = Path(
        "out/demo"
    ),
    epochs: Annotated[int | None, typer.Option(min=1, help="Fewer or more than the recipe's.")] = None,
) -> None:
    """Train on the embedded digits, explain some, measure, and write a report."""
    console = terminal()
    train, test = load_dataset(RECIPE, "train"), load_dataset(RECIPE, "test")
    console.print(f"training on {train!r} …")
    changes = {} if epochs is None else {"epochs": epochs}
    model = trained(RECIPE, out / "run", changes, data=(train, test), progress=console.is_terminal)
    assert isinstance(model, SITE)
    result = evaluate(model, test, name="demo")
    result.save(out / "demo.json")
    for name, value in headline(result).items():
        console.print(f"{name:>36}  {value}")
    page = write_demo(model, test, result, out)
    console.print(
        f"\nreport:   {page}\nmodel:    {out / 'run' / 'model'}\n"
        f"next:     torchsite explain PICTURE --model {out / 'run' / 'model'}\n"
        f"          torchsite compare {out / 'run' / 'model'} --limit 200\n"
        f"          torchsite reproduce        (the experiments of the paper)",
    )
