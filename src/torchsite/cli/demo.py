"""`torchsite demo`: train, explain and report on the bundled digits, offline, in a few minutes."""

from pathlib import Path
from typing import Annotated

import typer

from torchsite.cli.terminal import AsJson, say_figures, say_json, terminal, watching

RECIPE = "mnist_sample"


def demo(
    out: Annotated[Path, typer.Option(help="Where to write; a finished run there is used again.")] = Path(
        "out/demo"
    ),
    epochs: Annotated[int | None, typer.Option(min=1, help="Fewer or more than the recipe's.")] = None,
    limit: Annotated[int, typer.Option(min=2, help="Pictures to examine.")] = 1000,
    as_json: AsJson = False,
) -> None:
    """Train on the embedded digits, explain some, measure, and write a report.

    Example:

    torchsite demo --out out/demo
    """
    from torchsite.data import load_dataset
    from torchsite.evaluation.examine import examine
    from torchsite.evaluation.illustrate import illustrate
    from torchsite.evaluation.training_log import find_log
    from torchsite.model import load_classifier
    from torchsite.report import write_report
    from torchsite.report.format import headline
    from torchsite.training import fit
    from torchsite.training.recipes import build_model, load_recipe, override

    console = terminal(stderr=as_json)
    train, test = load_dataset(RECIPE, "train"), load_dataset(RECIPE, "test")
    console.print(f"training on {train!r} …")
    folder = out / "run" / "model"
    recipe = override(load_recipe(RECIPE), {} if epochs is None else {"epochs": epochs})
    if (out / "run" / "result.json").is_file():
        model = load_classifier(folder)
    else:
        model = build_model(recipe.model, train, recipe.training)
        fit(
            model,
            train,
            recipe.training,
            validation=test,
            folder=out / "run",
            resume=True,
            progress=console.is_terminal,
        )
    console.print("measuring …")
    with watching("measuring") as watch:
        result = examine(
            model, test, training=train, log=find_log(folder), limit=limit, n_compared=100, watch=watch
        )
    result.save(out / "demo.json")
    page = write_report(result, illustrate(model, test, result), out / "report.html")
    if as_json:
        say_json({"report": str(page), "model": str(folder), "figures": headline(result)})
        return
    say_figures(headline(result))
    console.print(
        f"\nreport:   {page}\nmodel:    {folder}\n"
        f"page:     torchsite serve --model {folder}\n"
        f"next:     torchsite explain PICTURE --model {folder}\n"
        f"          torchsite compare {folder} --limit 200\n"
        f"          torchsite reproduce        (the experiments of the paper)",
    )
