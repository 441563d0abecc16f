"""`torchsite demo`: train, explain and report on the bundled digits, offline, in about a minute."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from torchsite.cli.terminal import AsJson, say_json, terminal, watching

RECIPE = "mnist_sample"
EPOCHS = 6
METHODS, N_COMPARED, N_PROBED = ("self_explanation", "grad_cam"), 40, 100


def demo(
    out: Annotated[Path, typer.Option(help="Where to write; a finished run there is used again.")] = Path(
        "out/demo"
    ),
    epochs: Annotated[int, typer.Option(min=1, help="How long to train.")] = EPOCHS,
    limit: Annotated[int, typer.Option(min=2, help="Pictures to examine.")] = 300,
    as_json: AsJson = False,
) -> None:
    """Train on the bundled digits, explain one, measure, and write a report.

    Example:

    torchsite demo --out out/demo
    """
    from torchsite.data import load_dataset, to_float
    from torchsite.evaluation.examine import examine
    from torchsite.evaluation.illustrate import illustrate
    from torchsite.evaluation.training_log import find_log
    from torchsite.files import write_atomically
    from torchsite.model import SITE, load_classifier
    from torchsite.model.drawing import draw_explanation, png
    from torchsite.report import write_report
    from torchsite.report.findings import verdicts
    from torchsite.training import fit
    from torchsite.training.recipes import build_model, load_recipe, override

    console = terminal(stderr=as_json)
    train, test = load_dataset(RECIPE, "train"), load_dataset(RECIPE, "test")
    folder = out / "run" / "model"
    recipe = override(load_recipe(RECIPE), {"epochs": epochs})
    if (out / "run" / "result.json").is_file():
        model = load_classifier(folder)
    else:
        console.print(f"training on {len(train):,} digits …")
        model = build_model(recipe.model, train, recipe.training)
        bar, run = console.is_terminal, out / "run"
        fit(model, train, recipe.training, validation=test, folder=run, resume=True, progress=bar)
    console.print(f"measuring on {min(limit, len(test)):,} others …")
    with watching("measuring") as watch:
        result = examine(
            model,
            test,
            training=train,
            log=find_log(folder),
            methods=METHODS,
            limit=limit,
            n_compared=N_COMPARED,
            n_probed=N_PROBED,
            watch=watch,
        )
    result.save(out / "demo.json")
    report = write_report(result, illustrate(model, test, result), out / "report.html")
    assert isinstance(model, SITE)
    shown = draw_explanation(model.explain(to_float(test.images[:1])))
    picture = write_atomically(out / "explanation.png", png(shown))
    sentences = verdicts(result)
    if as_json:
        files = {"report": str(report), "picture": str(picture), "model": str(folder)}
        say_json(files | {"verdicts": sentences})
        return
    install = "" if find_spec("fastapi") else "pip install 'torchsite[web]' && "
    for line in (
        *sentences,
        f"picture:  {picture}  (a digit, and the evidence for each class)",
        f"report:   {report.resolve().as_uri()}",
        f"page:     http://127.0.0.1:8000, after {install}torchsite serve --model {folder}",
    ):
        console.print(line)
